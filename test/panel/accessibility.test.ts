// Every page and every dialog, in light and in dark, by axe: nothing that it calls serious. And with text that is longer and runs from
// right to left.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { LOCAL_DNS } from '../support/subdomains.ts'
import { dialogsOf } from './support/dialogs.ts'
import { furnish } from './support/furnish.ts'
import { pagesOf } from './support/pages.ts'
import { type PanelUnderTest, signIn, startPanel } from './support/panel.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const ZONES = [{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60 }]
const SERIOUS = ['serious', 'critical']

let panel: PanelUnderTest
let serverId: string
let backupId: string

before(async () => {
  panel = await startPanel({ ...LOCAL_DNS, GAMEKEEPER_ZONES: JSON.stringify(ZONES) })
})

after(() => panel?.close())

interface Violation {
  id: string
  impact: string
  nodes: { target: string[]; failureSummary: string }[]
}

/** Rules of WCAG 2.2 AA. `only`: those of them that concern colours. */
async function violations(page: Page, within: string, only?: 'colours'): Promise<string[]> {
  const rules = only
    ? { type: 'rule', values: ['color-contrast'] }
    : { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }
  const found = (await page.evaluate(
    // Playwright runs it in the page, where axe is.
    `axe.run(${JSON.stringify(within)}, ${JSON.stringify({ runOnly: rules, resultTypes: ['violations'] })}).then(({ violations }) => violations)`,
  )) as Violation[]
  return found
    .filter(({ impact }) => SERIOUS.includes(impact))
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} ${target.join(' ')} ${failureSummary}`),
    )
}

/** In light, and the colours in dark; afterwards it is light again. */
async function look(page: Page, name: string, within = ':root'): Promise<string[]> {
  if (!(await page.evaluate('typeof axe === "object"'))) await page.evaluate(AXE)
  const light = await violations(page, within)
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
  const dark = await violations(page, within, 'colours')
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.locator('html[data-mantine-color-scheme=light]').waitFor()
  return [...light.map((each) => `${name}, light: ${each}`), ...dark.map((each) => `${name}, dark: ${each}`)]
}

test('axe finds nothing serious where one arrives: signing in, and the first page', async () => {
  const found: string[] = []
  await panel.visit(
    '/',
    async (page) => {
      await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
      await page.getByRole('heading', { name: 'Welcome back' }).waitFor()
      found.push(...(await look(page, 'sign-in')))
      await signIn(page, panel.service.adminToken)
      await page.getByRole('heading', { name: 'Welcome! Which game shall it be?' }).waitFor()
      found.push(...(await look(page, 'welcome')))
    },
    { token: null },
  )
  assert.deepEqual(found, [])
})

test('axe finds nothing serious on any page, light or dark', async () => {
  const { url, adminToken } = panel.service
  serverId = await furnish(url, adminToken)
  const { data } = await panel.client.backups.list(serverId)
  backupId = data.at(-1)?.id ?? ''
  const found: string[] = []
  await panel.visit('/', async (page) => {
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
    await page.getByRole('heading', { name: 'Servers' }).waitFor()
    await page.getByRole('button', { name: 'Table' }).click()
    await page.locator('main tbody tr').first().waitFor()
    found.push(...(await look(page, 'servers, as a table')))
    await page.getByRole('button', { name: 'Cards' }).click()
    for (const { name, path, ready } of pagesOf(serverId, backupId)) {
      await page.goto(panel.service.url + path)
      await page.locator(ready).first().waitFor()
      found.push(...(await look(page, name)))
    }
  })
  assert.deepEqual(found, [])
})

test('axe finds nothing serious in any dialog, light or dark', async () => {
  const job = await panel.client.files.pack(serverId, {
    root: '/',
    files: ['world'],
    target: '/world.zip',
    format: 'zip',
  })
  await panel.client.jobs.wait(serverId, job.id)
  const stopped = (await panel.client.servers.list()).data.find(({ id }) => id !== serverId)
  const found: string[] = []
  await panel.visit('/', async (page) => {
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
    await page.getByRole('heading', { name: 'Servers' }).waitFor()
    for (const { path, ready, dialogs } of dialogsOf(serverId, stopped?.id ?? '')) {
      await page.goto(panel.service.url + path)
      await page.locator(ready).first().waitFor()
      for (const [name, open] of Object.entries(dialogs)) {
        await open(page)
        await page.getByRole('dialog').first().waitFor()
        found.push(...(await look(page, name, '[role=dialog]')))
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').first().waitFor({ state: 'detached' })
      }
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
