// A server's page in a real browser: its overview, names and settings.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Request } from 'playwright-core'
import { LOCAL_DNS } from '../support/subdomains.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

const ZONES = [{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60 }]
// More lines than a page of the console holds, one in a colour beyond the palette, then whatever it is told to.
const GAME = [
  'echo The needle lies here',
  'i=0; while [ $i -lt 700 ]; do i=$((i + 1)); echo "Loading chunk $i"; done',
  'printf "\\033[38;2;250;120;10mThe gates are open\\033[0m\\n"; echo "anna joined"',
  'while read -r line; do [ "$line" = stop ] && exit 0; [ "$line" = fall ] && exit 3; done',
].join('; ')
const TEMPLATE = {
  format: 1,
  id: 'gatehouse',
  name: 'Gatehouse',
  runtimes: ['process'],
  start: { args: ['/bin/sh', '-c', GAME] },
  ready: ['The gates are open'],
  joins: ['{player} joined'],
  leaves: ['{player} left'],
  variables: [
    { name: 'MAX_PLAYERS', title: 'Players at most', type: 'integer', min: 1, max: 100, default: 20 },
    { name: 'PASSWORD', title: 'Password', type: 'secret' },
  ],
  stop: [{ command: 'stop', timeoutSeconds: 10 }],
}

let panel: PanelUnderTest
let serverId: string

before(async () => {
  panel = await startPanel({ ...LOCAL_DNS, GAMEKEEPER_ZONES: JSON.stringify(ZONES) })
  const { client } = panel
  await client.templates.create(JSON.stringify(TEMPLATE))
  const variables = { PASSWORD: 'open sesame' }
  const server = { name: 'Castle', game: 'gatehouse', port: 25565, autoRestart: false, variables }
  serverId = (await client.servers.create(server)).id
})

after(() => panel?.close())

test('a name is checked while it is typed, goes live in sight, and is deleted', async () => {
  await panel.visit(`/servers/${serverId}/names`, async (page) => {
    await page.getByText('No name yet').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('-keep')
    await page.getByText('no hyphen at either end').waitFor()
    assert.ok(await page.getByRole('button', { name: 'Add the name' }).isDisabled())
    await page.getByLabel('Name', { exact: true }).fill('Dragon Keep')
    await page.getByText('dragon-keep.play.test:25565').waitFor()
    await page.getByRole('button', { name: 'Add the name' }).click()
    await page.locator('li[aria-current=step]', { hasText: 'answered' }).waitFor()
    await page.getByRole('button', { name: 'Delete dragon-keep.play.test' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No name yet').waitFor()
  })
})

test('the console is found through beyond what is loaded, and a crash leads to its last lines', async () => {
  const { client } = panel
  await client.power.start(serverId)
  await panel.visit(`/servers/${serverId}`, async (page) => {
    const rows = page.locator('.xterm-rows')
    await rows.getByText('The gates are open').waitFor()
    assert.equal(
      await rows.getByText('The gates are open').evaluate((cell) => getComputedStyle(cell).color),
      'rgb(250, 120, 10)',
    )
    await page.getByLabel('Players online').getByText('anna').waitFor()
    await page.getByLabel('Find in the console').fill('needle')
    await page.getByLabel('Find in the console').press('Enter')
    await rows.getByText('The needle lies here').waitFor()
    await client.console.send(serverId, 'fall')
    await page.getByText('It ended with exit code 3').waitFor()
    await page.getByRole('button', { name: 'Show its last lines' }).click()
    await rows.getByText('anna joined').waitFor()
  })
})

test('what is typed while a command is on its way is the next one, and the newest lines can be listened to', async () => {
  const { client } = panel
  await client.power.start(serverId)
  await panel.visit(
    `/servers/${serverId}`,
    async (page) => {
      const field = page.getByRole('textbox', { name: 'Command' })
      await page.locator('.xterm-rows').getByText('anna joined').waitFor()
      await page.getByRole('log').getByText('anna joined').waitFor()
      const held = Promise.withResolvers<void>()
      await page.route('**/console', async (route) => {
        if (route.request().method() === 'POST') await held.promise
        await route.continue()
      })
      await field.press('a')
      await field.press('Enter')
      await field.press('b')
      held.resolve()
      await page.getByRole('log').getByText('› a').waitFor()
      assert.equal(await field.inputValue(), 'b')
      await page.unroute('**/console')
      await page.route('**/console', (route) =>
        route.request().method() === 'POST' ? route.abort() : route.continue(),
      )
      await field.press('Enter')
      await page.getByText('The command was not sent').waitFor()
      assert.equal(await field.inputValue(), 'b')
    },
    { expected: [/ERR_FAILED/] },
  )
  await client.power.kill(serverId)
})

test('an installation is seen on the page of its server, whoever began it, and cancelled there', async () => {
  const { client } = panel
  const install = [{ do: 'run', args: ['/bin/sh', '-c', 'echo Fetching the moat; sleep 600'] }]
  await client.templates.create(JSON.stringify({ ...TEMPLATE, id: 'moat', name: 'Moat', variables: [], install }))
  const { id } = await client.servers.create({ name: 'Moat', game: 'moat', port: 25570 })
  await client.servers.install(id)
  await panel.visit(`/servers/${id}`, async (page) => {
    const strip = page.getByRole('region', { name: 'Under way' })
    await strip.getByText('Step 1 of 1').waitFor()
    await strip.getByRole('button', { name: 'Cancel: Installing' }).click()
    await strip.waitFor({ state: 'detached' })
  })
})

test('scrolling up in the console reads on, and stays where it was', async () => {
  await panel.visit(`/servers/${serverId}`, async (page) => {
    const rows = page.locator('.xterm-rows')
    await rows.getByText('anna joined').waitFor()
    const older = page.getByRole('button', { name: 'Older lines' })
    await older.waitFor()
    await page.locator('.xterm-screen').click()
    while (await older.isVisible()) await page.keyboard.press('Shift+PageUp')
    // The oldest line of the first page is where it was; those before it are further up.
    const needle = rows.getByText('The needle lies here')
    assert.equal(await needle.count(), 0)
    while ((await needle.count()) === 0) await page.keyboard.press('Shift+PageUp')
  })
})

test('activity is narrowed down by what happened and by who did it', async () => {
  await panel.visit(`/servers/${serverId}/activity`, async (page) => {
    const entries = page.getByRole('main').locator('ol > li')
    await entries.filter({ hasText: 'created the server' }).waitFor()
    await page.getByLabel('What').selectOption({ label: 'Commands' })
    await entries.filter({ hasText: 'created the server' }).waitFor({ state: 'detached' })
    await entries.filter({ hasText: 'admin sent the command fall' }).waitFor()
    await page.getByLabel('Who').selectOption({ label: 'Gamekeeper' })
    await page.getByText('Nothing matches').waitFor()
    await page.getByRole('button', { name: 'Show everything' }).first().click()
    await entries.filter({ hasText: 'created the server' }).waitFor()
  })
})

test('a console holds no connection while its tab is hidden, and shows what was written meanwhile', async () => {
  const { client } = panel
  await client.power.start(serverId)
  await panel.visit(`/servers/${serverId}`, async (page) => {
    const rows = page.locator('.xterm-rows')
    const setHidden = (isHidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, 'hidden', { value, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      }, isHidden)
    const isStream = (request: Request) => request.headers().accept === 'text/event-stream'
    await rows.getByText('anna joined').waitFor()
    const begun = page.waitForResponse((response) => isStream(response.request()))
    await page.reload()
    await begun
    const ended = page.waitForEvent('requestfailed', isStream)
    await setHidden(true)
    await ended
    await client.console.send(serverId, 'while nobody looked')
    await setHidden(false)
    await rows.getByText('while nobody looked').waitFor()
  })
  await client.power.kill(serverId)
})

test('a page that somebody looks at recovers by itself from a restart of the service', async () => {
  const { client } = panel
  const { url } = panel.service
  await client.power.start(serverId)
  await panel.visit(
    `/servers/${serverId}`,
    async (page) => {
      const rows = page.locator('.xterm-rows')
      await page.getByLabel('Players online').getByText('anna').waitFor()
      const lost = page.getByText('Connection lost').waitFor()
      // One that is back at once is not missed.
      await panel.service.halt()
      await lost
      await panel.service.restart({ GAMEKEEPER_PORT: new URL(url).port })
      assert.equal(panel.service.url, url)
      // Nothing is written meanwhile.
      await page.getByText('Connection lost').waitFor({ state: 'detached' })
      // The game ran on meanwhile, and its console goes on where it was.
      await client.console.send(serverId, 'after the restart')
      await rows.getByText('after the restart').waitFor()
      await client.power.kill(serverId)
      await page.getByRole('button', { name: 'Start', exact: true }).waitFor()
      // A tab that nobody has visited yet, as it would be while the service is away.
      const part = '**/assets/backups-tab-*.js'
      await page.route(part, (route) => route.abort())
      await page.route('**/healthz', async (route) => {
        await page.unroute(part)
        await route.continue()
      })
      await page.getByRole('link', { name: 'Backups', exact: true }).click()
      await page.getByRole('button', { name: 'Back up now' }).first().waitFor()
    },
    { expected: [/ERR_|50[23]/] },
  )
})

test('settings are saved by the rules of the template, a secret stays as it is, and a deleted server comes back', async () => {
  const { client } = panel
  await panel.visit(`/servers/${serverId}/settings`, async (page) => {
    const game = page.locator('section', { hasText: 'Settings of the game' })
    await game.getByLabel('Players at most').fill('10')
    await game.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Settings of the game: saved.').waitFor()
    assert.deepEqual((await client.servers.read(serverId)).variables, { MAX_PLAYERS: 10, PASSWORD: null })
    await page.getByRole('button', { name: 'Delete…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Type Castle to confirm').fill('castle')
    assert.ok(await dialog.getByRole('button', { name: 'Delete', exact: true }).isDisabled())
    await dialog.getByLabel('Type Castle to confirm').fill('Castle')
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Castle is deleted.').waitFor()
    const ofCastle = asked.filter((path) => path.includes(`/${serverId}/`) && !path.includes('/jobs/'))
    assert.deepEqual(ofCastle, [], 'the list asks about a server that is being deleted')
    await page.goto(`${panel.service.url}/servers/${serverId}/settings`)
    await page.getByRole('button', { name: 'Bring it back' }).click()
    await page.getByLabel('Name', { exact: true }).waitFor()
    assert.equal((await client.servers.read(serverId)).variables.PASSWORD, null)
  })
})
