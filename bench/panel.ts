// How the panel feels in Chromium, against a real service on loopback: what the first page weighs and how soon it can be used, a console
// that gets 2,000 lines a second, and a folder of 100,000 entries.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type Client, createClient } from '../src/sdk/index.ts'
import { BROWSER } from '../test/panel/support/browser.ts'
import { requireFreshBuild, signIn } from '../test/panel/support/panel.ts'
import { startTestService, type TestService } from '../test/support/service.ts'
import { holds, median, table } from './measure.ts'
import { gzippedBytes, startFrames, stopFrames, watchFor, watchLongTasks } from './support/in-page.ts'

const ROUNDS = 5
const SLOWER = 4
const LINES_PER_SECOND = 2_000
const CONSOLE_MS = 10_000
const ENTRIES = 100_000

interface Bench {
  browser: Browser
  service: TestService
  client: Client
}

export async function run(): Promise<boolean> {
  requireFreshBuild()
  await using service = await startTestService()
  const browser = await chromium.launch(BROWSER)
  try {
    const bench = { browser, service, client: createClient({ baseUrl: service.url, token: service.adminToken }) }
    for (let index = 0; index < 20; index++) await service.createServer({ name: `Server ${index}` })
    const results = [await firstPage(bench), await busyConsole(bench), await largeFolder(bench)]
    return results.every(Boolean)
  } finally {
    await browser.close()
  }
}

/** A page of somebody who is signed in. */
async function openSignedIn({ browser, service }: Bench): Promise<Page> {
  const page = await (await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 860 } })).newPage()
  await page.goto(service.url)
  await signIn(page, service.adminToken)
  await page.locator('main li').first().waitFor()
  return page
}

async function firstPage(bench: Bench): Promise<boolean> {
  const page = await openSignedIn(bench)
  const gzipped = await gzippedBytes(page, () => page.reload().then(() => page.locator('main li').first().waitFor()))
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: SLOWER })
  await cdp.send('Network.enable')
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true })
  await watchFor(page, 'main li')
  const shown: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await page.goto(bench.service.url)
    await page.locator('main li').first().waitFor()
    shown.push(await page.evaluate(() => (globalThis as unknown as { shownAt: number }).shownAt))
  }
  await page.context().close()
  table([
    ['servers page', 'median', ...shown.map((_, index) => `round ${index + 1}`)],
    [`ms until it can be used, ${SLOWER}x slower processor`, median(shown), ...shown],
  ])
  const held = [
    holds('the first page, gzipped, in kB', gzipped / 1000, '<=', 250),
    holds('ms until the servers page can be used', median(shown), '<=', 1000),
  ]
  return held.every(Boolean)
}

async function busyConsole(bench: Bench): Promise<boolean> {
  const batch = LINES_PER_SECOND / 20
  const line = '[Server thread/INFO]: \\033[32mLoaded chunk $i of the world, and what is in it\\033[0m'
  const game = `i=0; while :; do j=0; while [ $j -lt ${batch} ]; do i=$((i+1)); j=$((j+1)); printf "${line}\\n"; done; sleep 0.05; done`
  const template = {
    format: 1,
    id: 'busy',
    name: 'Busy',
    runtimes: ['process'],
    start: { args: ['/bin/sh', '-c', game] },
    stop: [{ signal: 'SIGTERM', timeoutSeconds: 10 }],
  }
  await bench.client.templates.create(JSON.stringify(template))
  const { id } = await bench.client.servers.create({ name: 'Busy', game: 'busy', port: 25599 })
  await bench.client.power.start(id)
  const page = await openSignedIn(bench)
  await page.goto(`${bench.service.url}/servers/${id}`)
  await page.locator('.xterm-rows', { hasText: 'Loaded chunk' }).waitFor()
  await page.locator('.u-wrap').first().waitFor()
  const tasks = await watchLongTasks(page, CONSOLE_MS)
  await bench.client.power.kill(id)
  await page.context().close()
  return holds(
    `ms of the longest task in ${CONSOLE_MS / 1000} s of ${LINES_PER_SECOND} lines a second`,
    Math.max(0, ...tasks),
    '<=',
    50,
  )
}

async function largeFolder(bench: Bench): Promise<boolean> {
  const { id } = await bench.service.createServer({ name: 'Large' })
  const folder = join(bench.service.dataDir, 'servers', id, 'files', 'many')
  mkdirSync(folder, { recursive: true })
  for (let index = 0; index < ENTRIES; index++)
    writeFileSync(join(folder, `file-${String(index).padStart(6, '0')}.dat`), '')
  const page = await openSignedIn(bench)
  await page.goto(`${bench.service.url}/servers/${id}/files`)
  await page.getByRole('row', { name: 'many' }).waitFor()
  const answered = page.waitForResponse((response) => /\/v1\/.*many/.test(response.url()))
  await page.goto(`${bench.service.url}/servers/${id}/files/many`)
  await (await answered).finished()
  const answeredAt = performance.now()
  await page.getByRole('row', { name: 'file-000000.dat' }).waitFor()
  const rowsMs = performance.now() - answeredAt
  const grid = page.getByRole('grid')
  await grid.hover()
  await page.waitForLoadState('networkidle')
  await startFrames(page)
  for (let step = 0; step < 60; step++) await page.mouse.wheel(0, 900)
  const frames = await stopFrames(page)
  await page.context().close()
  const held = [
    holds('ms from the answer to the first rows', rowsMs, '<=', 300),
    holds('ms of a frame while scrolling, median', median(frames), '<=', 32),
  ]
  return held.every(Boolean)
}
