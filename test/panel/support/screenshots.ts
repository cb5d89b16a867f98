// Pictures of every page in light, dark and phone width: `node test/panel/support/screenshots.ts docs/images`. Look at them. Those
// that README.md and docs/panel.md show are in the folder itself, all others in its folder `panel`.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { createClient } from '../../../src/sdk/index.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { BROWSER } from './browser.ts'
import { pagesOf } from './pages.ts'
import { requireFreshBuild, signIn } from './panel.ts'
import { writePastWeek } from './past-week.ts'
import { furnishShowcase } from './showcase.ts'

const DESKTOP = { width: 1280, height: 860 }
const LOOKS = {
  light: { colorScheme: 'light', viewport: DESKTOP },
  dark: { colorScheme: 'dark', viewport: DESKTOP },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
} as const satisfies Record<string, BrowserContextOptions>
type Look = keyof typeof LOOKS

/** In the texts. */
const SHOWN = ['overview-light', 'overview-dark', 'servers-light', 'backups-light', 'files-light', 'overview-phone']
/** For what moves when it comes, and for times and figures to settle. */
const SETTLING_MS = 700
const LANGUAGES = { light: 'en-GB', dark: 'de-DE', phone: 'en-GB' }

interface Studio {
  browser: Browser
  service: TestService
  folder: string
}

async function open({ browser, service }: Studio, look: Look): Promise<Page> {
  const page = await browser.newPage({ ...LOOKS[look], locale: LANGUAGES[look], reducedMotion: 'reduce' })
  page.on('console', (message) => console.log(look, message.type(), message.text()))
  page.on('pageerror', (error) => console.log(look, error))
  await page.goto(service.url)
  return page
}

async function shoot(page: Page, { folder }: Studio, name: string): Promise<void> {
  await page.waitForTimeout(SETTLING_MS)
  if (SHOWN.includes(name)) await page.screenshot({ path: join(folder, `panel-${name}.png`) })
  else await page.screenshot({ path: join(folder, 'panel', `${name}.jpg`), type: 'jpeg', quality: 75 })
}

/** Before there is any server. */
async function shootArrival(studio: Studio, look: Look): Promise<void> {
  const page = await open(studio, look)
  await page.locator('form').waitFor()
  await shoot(page, studio, `sign-in-${look}`)
  await signIn(page, studio.service.adminToken)
  await page.locator('main li').first().waitFor()
  await shoot(page, studio, `welcome-${look}`)
  await page.close()
}

async function shootPages(studio: Studio, look: Look, serverId: string, backupId: string): Promise<void> {
  const page = await open(studio, look)
  await signIn(page, studio.service.adminToken)
  await page.locator('nav').first().waitFor({ state: 'attached' })
  for (const { name, path, ready } of pagesOf(serverId, backupId)) {
    await page.goto(studio.service.url + path)
    await page.locator(ready).first().waitFor()
    await shoot(page, studio, `${name}-${look}`)
  }
  await shootDialogs(page, studio, look, serverId)
  await shootOverlays(page, studio, look)
  await page.close()
}

/** By where things are: the words are those of a language. */
async function shootDialogs(page: Page, studio: Studio, look: Look, serverId: string): Promise<void> {
  const { url } = studio.service
  const dialog = page.locator('[role=dialog]')
  await page.goto(`${url}/servers/${serverId}/backups`)
  await page.locator('main .spread button').first().click()
  await dialog.locator('textarea').fill('*.jar\n/world/region/')
  await shoot(page, studio, `backup-dialog-${look}`)
  await page.goto(`${url}/servers/${serverId}/files`)
  await page.locator('main [aria-haspopup=menu]').first().click()
  await page.locator('[role=menuitem]').last().click()
  await dialog.locator('form button:has(svg)').first().click()
  await dialog.locator('li button').first().waitFor()
  await shoot(page, studio, `folder-picker-${look}`)
  await page.goto(`${url}/people`)
  await page.locator('main li button').last().waitFor()
  await page.locator('main ul').last().locator('li').first().locator('button').first().click()
  await dialog.locator('li').first().waitFor()
  await shoot(page, studio, `sessions-${look}`)
}

async function shootOverlays(page: Page, studio: Studio, look: Look): Promise<void> {
  await page.goto(`${studio.service.url}/people`)
  await page.locator('main li').first().waitFor()
  await page.locator('main button').first().click()
  await page.locator('[role=dialog] input[type=radio]').first().waitFor()
  await shoot(page, studio, `invite-${look}`)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.locator('[role=option]').first().waitFor()
  await page.keyboard.type('castle')
  await shoot(page, studio, `palette-${look}`)
  await page.evaluate(() => localStorage.setItem('gamekeeper-servers-view', 'table'))
  await page.goto(studio.service.url)
  await page.locator('main tbody tr').first().waitFor()
  await shoot(page, studio, `servers-table-${look}`)
}

const [, , folder = '/tmp/panel-screenshots'] = process.argv
const looks = Object.keys(LOOKS) as Look[]
await mkdir(join(folder, 'panel'), { recursive: true })
requireFreshBuild()
const zones = [{ zone: 'play.example.org', provider: 'embedded', target: '203.0.113.7', ttl: 60 }]
await using service = await startTestService({
  env: { GAMEKEEPER_ZONES: JSON.stringify(zones), GAMEKEEPER_DNS_PORT: '0' },
})
const browser = await chromium.launch(BROWSER)
try {
  const studio = { browser, service, folder }
  for (const look of looks) await shootArrival(studio, look)
  const client = createClient({ baseUrl: service.url, token: service.adminToken })
  const { serverId, backupId } = await furnishShowcase(client)
  writePastWeek(join(service.dataDir, 'servers', serverId, 'game'))
  for (const look of looks) await shootPages(studio, look, serverId, backupId)
} finally {
  await browser.close()
}
