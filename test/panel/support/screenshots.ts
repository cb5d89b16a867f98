// Pictures of every page in light, dark and phone width: `node test/panel/support/screenshots.ts FOLDER`. Look at them.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { startTestService } from '../../support/service.ts'
import { BROWSER } from './browser.ts'
import { furnish } from './furnish.ts'
import { requireFreshBuild, signIn } from './panel.ts'

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
    await shoot(page, base, '/servers/new', file('new-server'), 'main li button')
    await shoot(page, base, `/servers/${serverId}`, file('overview'), '.xterm')
    await shoot(page, base, `/servers/${serverId}/files`, file('files'), '[role=grid]')
    await shoot(
      page,
      base,
      `/servers/${serverId}/files?edit=server.properties`,
      file('editor'),
      '[aria-label="server.properties"]',
    )
    await shoot(page, base, `/servers/${serverId}/backups`, file('backups'), 'main li')
    await shoot(page, base, `/servers/${serverId}/activity`, file('activity'), 'main li')
    await context.close()
  }
}

const [, , folder = '/tmp/panel-screenshots'] = process.argv
await mkdir(folder, { recursive: true })
requireFreshBuild()
await using service = await startTestService()
const serverId = await furnish(service.url, service.adminToken)
const browser = await chromium.launch(BROWSER)
try {
  await shootAll(browser, service.url, service.adminToken, serverId, folder)
} finally {
  await browser.close()
}
