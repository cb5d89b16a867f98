// Pictures of every page in light, dark and phone width: `node test/panel/support/screenshots.ts FOLDER`. Look at them.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { createClient } from '../../../src/sdk/index.ts'
import { startTestService } from '../../support/service.ts'
import { BROWSER } from './browser.ts'
import { furnish } from './furnish.ts'
import { requireFreshBuild, signIn } from './panel.ts'
import { writePastWeek } from './past-week.ts'

const LOOKS = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 860 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 860 } },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
} as const

async function shoot(page: Page, base: string, path: string, file: string, ready: string): Promise<void> {
  await page.goto(base + path)
  await page.locator(ready).first().waitFor({ timeout: 15_000 })
  await page.waitForTimeout(700)
  await page.screenshot({ path: file })
}

async function shootAll(browser: Browser, base: string, token: string, serverId: string, folder: string) {
  for (const [look, options] of Object.entries(LOOKS)) {
    const context = await browser.newContext({ ...options, locale: look === 'dark' ? 'de-DE' : 'en-GB' })
    const page = await context.newPage()
    page.on('console', (message) => console.log(look, message.type(), message.text(), message.location()))
    page.on('pageerror', (error) => console.log(look, error))
    const file = (name: string) => join(folder, `${name}-${look}.png`)
    await shoot(page, base, '/', file('sign-in'), 'form')
    await signIn(page, token)
    await page.locator('h1').first().waitFor()
    await shoot(page, base, '/', file('servers'), 'main li')
    await shoot(page, base, '/servers/new', file('new-server'), 'main li a')
    await shoot(page, base, '/people', file('people'), 'main li')
    await page.locator('main button').first().click()
    await page.locator('[role=dialog] input[type=radio]').first().waitFor()
    await page.waitForTimeout(300)
    await page.screenshot({ path: file('invite') })
    await shoot(page, base, '/instance', file('instance'), 'main section li')
    await shoot(page, base, '/instance/templates', file('templates'), 'main li')
    await shoot(page, base, '/instance/zones', file('zones'), 'main section')
    await shoot(page, base, '/instance/tokens', file('tokens'), 'main li')
    await page.keyboard.press('Control+k')
    await page.locator('[role=option]').first().waitFor()
    await page.keyboard.type('castle')
    await page.waitForTimeout(300)
    await page.screenshot({ path: file('palette') })
    await page.evaluate(() => localStorage.setItem('gamekeeper-servers-view', 'table'))
    await shoot(page, base, '/', file('servers-table'), 'main tbody tr')
    await shoot(page, base, `/servers/${serverId}`, file('overview'), '.u-wrap')
    await shoot(page, base, `/servers/${serverId}/files`, file('files'), '[role=grid]')
    await shoot(
      page,
      base,
      `/servers/${serverId}/files?edit=server.properties`,
      file('editor'),
      '[aria-label="server.properties"]',
    )
    await shootFilesAndBackups(page, base, serverId, file)
    await shoot(page, base, `/servers/${serverId}/names`, file('names'), 'main li li')
    await shoot(page, base, `/servers/${serverId}/activity`, file('activity'), 'main li')
    await shoot(page, base, `/servers/${serverId}/settings`, file('settings'), 'main form')
    await context.close()
  }
}

async function shootFilesAndBackups(page: Page, base: string, serverId: string, file: (name: string) => string) {
  const files = `/servers/${serverId}/files`
  const backups = `/servers/${serverId}/backups`
  await shoot(page, base, `${files}/logs?view=latest.log`, file('log'), 'pre')
  await shoot(page, base, `${files}?versions=server.properties`, file('versions'), 'main li button')
  await shoot(page, base, `${files}?show=usage`, file('usage'), 'main section button')
  await shoot(page, base, `${files}?show=trash`, file('trash'), 'main section')
  await shoot(page, base, `${backups}?show=plan`, file('backup-plans'), 'main form')
  await shoot(page, base, backups, file('backups'), 'main li')
  await page.locator('main li a').last().click()
  await page.locator('main li input').first().waitFor()
  await page.waitForTimeout(300)
  await page.screenshot({ path: file('backup-inside') })
}

/** Before there is any server. */
async function shootWelcome(browser: Browser, base: string, token: string, folder: string): Promise<void> {
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await browser.newPage({ ...options, locale: look === 'dark' ? 'de-DE' : 'en-GB' })
    await page.goto(base)
    await signIn(page, token)
    await page.locator('main li').first().waitFor()
    await page.screenshot({ path: join(folder, `welcome-${look}.png`) })
    await page.close()
  }
}

async function furnishPeople(baseUrl: string, token: string, serverId: string): Promise<void> {
  const client = createClient({ baseUrl, token })
  const scopes = ['servers:read', 'console:read', 'activity:read', 'subdomains:read'] as const
  await client.tokens.create({ name: 'Anna', scopes: [...scopes], servers: [serverId] })
  await client.tokens.create({ name: 'nightly copies', scopes: ['backups:read'], servers: '*' })
  await client.invitations.create({ name: 'Ben', scopes: [...scopes, 'console:write', 'power:write'], servers: '*' })
}

const [, , folder = '/tmp/panel-screenshots'] = process.argv
await mkdir(folder, { recursive: true })
requireFreshBuild()
const zones = [{ zone: 'play.example.org', provider: 'embedded', target: '203.0.113.7', ttl: 60 }]
await using service = await startTestService({
  env: { GAMEKEEPER_ZONES: JSON.stringify(zones), GAMEKEEPER_DNS_PORT: '0' },
})
const browser = await chromium.launch(BROWSER)
try {
  await shootWelcome(browser, service.url, service.adminToken, folder)
  const serverId = await furnish(service.url, service.adminToken)
  await furnishPeople(service.url, service.adminToken, serverId)
  writePastWeek(join(service.dataDir, 'servers', serverId, 'game'))
  const { subdomains } = createClient({ baseUrl: service.url, token: service.adminToken })
  for (const name of ['castle', 'siege']) await subdomains.create(serverId, { name, zone: 'play.example.org' })
  await shootAll(browser, service.url, service.adminToken, serverId, folder)
} finally {
  await browser.close()
}
