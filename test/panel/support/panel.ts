// One service with its panel and one browser, for all tests of a file.
import assert from 'node:assert/strict'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { isPanelBuilt } from '../../../scripts/build-panel.ts'
import { type Client, createClient } from '../../../src/sdk/index.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { BROWSER } from './browser.ts'

export interface VisitOptions {
  /** By default that of the administrator; null: nobody signs in. */
  token?: string | null
  /** What the browser may write to its console. */
  expected?: RegExp[]
  /** Another way to the service, such as a proxy. */
  baseUrl?: string
  /** Runs in the page before anything of its own. */
  before?: () => void
}

export interface PanelUnderTest {
  service: TestService
  /** With the token of the administrator. */
  client: Client
  /** Signed in, at a path; whatever the browser writes to its console fails the test at the end, unless it is expected. */
  visit(
    path: string,
    act: (page: Page, context: BrowserContext) => Promise<void>,
    options?: VisitOptions,
  ): Promise<void>
  close(): Promise<void>
}

/** What a page does not show by then will not come, on the slowest of machines. */
const GIVE_UP_MS = 90_000

/** `env`: settings of the service. */
export async function startPanel(env: Record<string, string> = {}): Promise<PanelUnderTest> {
  requireFreshBuild()
  await using cleanUp = new AsyncDisposableStack()
  const service = await startTestService({ env })
  cleanUp.defer(() => service.stop())
  const browser = await chromium.launch(BROWSER)
  cleanUp.defer(() => browser.close())
  const running = cleanUp.move()
  return {
    service,
    client: createClient({ baseUrl: service.url, token: service.adminToken }),
    async visit(path, act, { token = service.adminToken, expected = [], baseUrl = service.url, before } = {}) {
      const context = await browser.newContext({ locale: 'en-GB' })
      context.setDefaultTimeout(GIVE_UP_MS)
      if (before) await context.addInitScript(before)
      const messages: { text: string; of?: string }[] = []
      try {
        const page = await context.newPage()
        page.on('console', (message) => messages.push({ text: message.text(), of: message.location().url }))
        page.on('pageerror', (error) => messages.push({ text: String(error) }))
        await page.goto(baseUrl + path)
        if (token !== null) await signIn(page, token)
        await act(page, context)
        const unexpected = messages.filter(({ text }) => !expected.some((pattern) => pattern.test(text)))
        assert.deepEqual(unexpected, [])
      } catch (error) {
        const shown = await context.pages()[0]?.locator('body').innerText()
        const written = messages.map(({ text, of }) => `${text} ${of ?? ''}`).join('\n')
        throw new Error(`${String(error)}\nThe page says:\n${shown}\nIts console:\n${written}`, { cause: error })
      } finally {
        await context.close()
      }
    },
    close: () => running.disposeAsync(),
  }
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.locator('input[type=password]').fill(token)
  await page.locator('button[type=submit]').click()
}

/** `npm ci` has built it; whoever has changed it since would test the old one. */
export function requireFreshBuild(): void {
  assert.ok(isPanelBuilt(), 'panel/dist is older than its sources: npm run build:panel')
}
