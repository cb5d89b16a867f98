// Every page, in light and in dark, by axe: nothing that it calls serious. And with text that is longer and runs from right to left.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { createClient } from '../../src/sdk/index.ts'
import { LOCAL_DNS } from '../support/subdomains.ts'
import { furnish } from './support/furnish.ts'
import { pagesOf } from './support/pages.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const ZONES = [{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60 }]
const SERIOUS = ['serious', 'critical']

let panel: PanelUnderTest
let serverId: string
let backupId: string

before(async () => {
  panel = await startPanel({ ...LOCAL_DNS, GAMEKEEPER_ZONES: JSON.stringify(ZONES) })
  const { url, adminToken } = panel.service
  serverId = await furnish(url, adminToken)
  const { data } = await createClient({ baseUrl: url, token: adminToken }).backups.list(serverId)
  backupId = data.at(-1)?.id ?? ''
})

after(() => panel?.close())

interface Violation {
  id: string
  impact: string
  nodes: { target: string[]; failureSummary: string }[]
}

/** Rules of WCAG 2.2 AA. `only`: those of them that concern colours. */
async function violations(page: Page, only?: 'colours'): Promise<string[]> {
  const rules = only
    ? { type: 'rule', values: ['color-contrast'] }
    : { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }
  const found = (await page.evaluate(
    // Playwright runs it in the page, where axe is.
    `axe.run(document, ${JSON.stringify({ runOnly: rules, resultTypes: ['violations'] })}).then(({ violations }) => violations)`,
  )) as Violation[]
  return found
    .filter(({ impact }) => SERIOUS.includes(impact))
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} ${target.join(' ')} ${failureSummary}`),
    )
}

test('axe finds nothing serious on any page, light or dark', async () => {
  const found: string[] = []
  await panel.visit('/', async (page) => {
    await page.getByRole('heading', { name: 'Servers' }).waitFor()
    for (const { name, path, ready } of pagesOf(serverId, backupId)) {
      await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
      await page.goto(panel.service.url + path)
      await page.locator(ready).first().waitFor()
      await page.evaluate(AXE)
      for (const each of await violations(page)) found.push(`${name}, light: ${each}`)
      await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
      await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
      for (const each of await violations(page, 'colours')) found.push(`${name}, dark: ${each}`)
    }
  })
  assert.deepEqual(found, [])
})

test('text that is a third longer and runs from right to left fits a phone, and nothing stays on the other side', async () => {
  const wide: string[] = []
  await panel.visit('/', async (page) => {
    await page.getByRole('heading', { name: 'Servers' }).waitFor()
    await page.evaluate(() => localStorage.setItem('gamekeeper-locale', 'pseudo'))
    await page.reload()
    const side = await page.locator('nav').first().boundingBox()
    assert.ok((side?.x ?? 0) > 640, 'the navigation is on the right')
    await page.setViewportSize({ width: 360, height: 740 })
    const chosen = ['servers', 'people', 'overview', 'files', 'backups', 'settings']
    for (const { name, path, ready } of pagesOf(serverId, backupId).filter((each) => chosen.includes(each.name))) {
      await page.goto(panel.service.url + path)
      await page.locator(ready).first().waitFor()
      if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wide.push(name)
    }
  })
  assert.deepEqual(wide, [])
})
