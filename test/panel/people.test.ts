// Who may do what: a friend is invited, comes, looks, and is put out; and what an owner does beside the servers.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { type Client, createClient, isApiError } from '../../src/sdk/index.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

let panel: PanelUnderTest
let client: Client

before(async () => {
  panel = await startPanel()
  client = panel.client
})

after(() => panel?.close())

/** The path and fragment of a link that signs in as somebody of that name. */
async function linkOf(name: string): Promise<string> {
  const { token } = await client.tokens.create({ name, scopes: ['servers:read'], servers: '*' })
  const { url } = await createClient({ baseUrl: panel.service.url, token }).session.createLink()
  return url.slice(panel.service.url.length)
}

/** As it is on disk: an egg that somebody has downloaded. */
const EGG = JSON.stringify({
  meta: { version: 'PTDL_v2' },
  name: 'Drop Game',
  docker_images: { 'Java 21': 'ghcr.io/example/yolks:java_21' },
  startup: './game --port {{SERVER_PORT}}',
  config: { files: '{}', startup: '{"done": "Ready"}', logs: '{}', stop: 'quit' },
  scripts: { installation: { script: 'echo hello', container: 'debian:bookworm-slim', entrypoint: 'bash' } },
  variables: [],
})

test('the first visit offers games, and ends on the console of one that runs', async () => {
  const line = 'echo The gates are open; while read -r line; do [ "$line" = stop ] && exit 0; done'
  const template = {
    ...{ format: 1, id: 'gatehouse', name: 'Gatehouse', runtimes: ['process'], ready: ['The gates are open'] },
    start: { args: ['/bin/sh', '-c', line] },
    stop: [{ command: 'stop', timeoutSeconds: 10 }],
  }
  await client.templates.create(JSON.stringify(template))
  await panel.visit('/', async (page) => {
    await page.getByRole('heading', { name: 'Welcome! Which game shall it be?' }).waitFor()
    await page.getByRole('main').getByRole('link', { name: 'Gatehouse' }).click()
    await page.getByRole('button', { name: 'Create and start' }).click()
    await page.locator('.xterm-rows', { hasText: 'The gates are open' }).waitFor()
    // Also before the service has measured it by itself.
    const disk = page.locator('dt', { hasText: /^Disk$/ }).locator('xpath=..')
    await disk.filter({ hasText: /\d B|KiB/ }).waitFor()
  })
})

test('a friend is invited to look at one server, sees nothing else, and is out as soon as that is revoked', async () => {
  await panel.service.createServer({ name: 'Secret garden' })
  let link = ''
  await panel.visit('/people', async (page) => {
    await page.getByRole('button', { name: 'Invite somebody' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Anna')
    await dialog.getByLabel('Gatehouse').check()
    await dialog.getByLabel('Play the console').check()
    await dialog.getByRole('button', { name: 'Make the link' }).click()
    link = (await dialog.getByText(/\/join#invitation=/).textContent()) ?? ''
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Take the invitation of Anna back' }).waitFor()
  })
  await panel.visit(
    link.slice(panel.service.url.length),
    async (page) => {
      await page.getByRole('main').getByRole('link', { name: 'Gatehouse' }).click()
      await page.getByRole('textbox', { name: 'Command' }).waitFor()
      assert.equal(new URL(page.url()).hash, '')
      assert.equal(await page.getByText('Secret garden').count(), 0)
      assert.equal(await page.getByRole('link', { name: 'Files' }).count(), 0)
      const anna = (await client.tokens.list()).data.find(({ name }) => name === 'Anna')
      assert.ok(anna?.lastUsedAt)
      await client.tokens.revoke(anna.id)
      await page.getByRole('heading', { name: 'Welcome back' }).waitFor()
    },
    { token: null, expected: [/401/] },
  )
})

test('an egg that is chosen becomes a template, with a report of every part', async () => {
  await panel.visit('/instance/templates', async (page) => {
    await page
      .getByLabel('Template or egg to import')
      .setInputFiles({ name: 'egg-drop-game.json', mimeType: 'application/json', buffer: Buffer.from(EGG) })
    const report = page.getByRole('dialog')
    await report.getByText('Drop Game is imported').waitFor()
    await report.getByText('parts were kept').waitFor()
    await report.getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('button', { name: 'Delete Drop Game' }).waitFor()
  })
})

test('the palette goes to a page and stops a game without the mouse, and several are started at once', async () => {
  await panel.visit('/', async (page) => {
    await page.getByRole('heading', { name: 'Servers' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('stop gatehouse')
    await page.getByRole('option', { name: 'Stop: Gatehouse' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('main').getByText('Stopped').nth(1).waitFor()
    await page.getByLabel('Choose Gatehouse').check()
    await page
      .getByRole('region', { name: 'Chosen servers' })
      .getByRole('button', { name: 'Start', exact: true })
      .click()
    await page.getByRole('main').getByText('Running').waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('instance')
    await page.keyboard.press('Enter')
    await page.getByText('Everything it needs is there').waitFor()
  })
})

test('the room on the disks is told to whoever may do everything, and to nobody else', async () => {
  const { data } = await client.disks.read()
  assert.deepEqual(data.flatMap(({ folders }) => folders).sort(), ['backups', 'data', 'servers'])
  for (const { freeBytes, totalBytes } of data) assert.ok(freeBytes > 0 && freeBytes <= totalBytes)
  const { id } = await panel.service.createServer({ name: 'Narrow' })
  const { token } = await panel.service.mint(['*'], [id])
  const narrow = createClient({ baseUrl: panel.service.url, token })
  await assert.rejects(narrow.disks.read(), (error) => isApiError(error, 'forbidden'))
  await client.servers.deleteAndWait(id, 'Narrow')
})

test('the instance says how the off-site store stands, takes a confirmation, and calls nothing good that is not', async () => {
  const holdings = { backups: 40, blobs: 120, bytes: 2_147_483_648 }
  const offsite = {
    ...{ place: 's3://my-games/castle', isAppendOnly: false, isReachable: true, activity: 'waiting', progress: null },
    ...{ problem: 'Most of it would be removed.', lastRun: null, nextRunAt: null, oldestPendingAt: null },
    ...{ pendingBackups: 2, pendingBytes: 1_048_576, mirror: holdings, surplus: { ...holdings, reason: 'shrinks' } },
  }
  await panel.visit('/instance', async (page) => {
    await page.getByText('None is set up: backups are on this machine only.').waitFor()
    await page.getByText(/ of .+ are free$/).waitFor()
    await page.getByRole('heading', { name: 'Everything it needs is there' }).waitFor()
    let confirmed: unknown = null
    await page.route('**/v1/game/offsite', (route) => route.fulfill({ json: offsite }))
    await page.route('**/v1/game/offsite/prune', (route) => {
      confirmed = route.request().postDataJSON()
      return route.fulfill({ status: 202, json: { ...offsite, problem: null, surplus: null } })
    })
    await page.route('**/readyz', (route) =>
      route.fulfill({ json: { status: 'ready', checks: { offsite: 'ok' }, warnings: { offsite: 'It is behind.' } } }),
    )
    await page.getByText('2 backups are still to be sent, 1 MiB.').waitFor()
    await page.getByRole('heading', { name: 'Something needs you' }).waitFor()
    await page.getByRole('button', { name: 'Remove it there too' }).click()
    await page.getByRole('dialog').getByText('Remove 2 GiB from the off-site store?').waitFor()
    const pruned = page.waitForResponse('**/v1/game/offsite/prune')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove it' }).click()
    await pruned
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.deepEqual(confirmed, { bytes: holdings.bytes })
  })
})

test('an off-site store that belongs to another service is taken over only after a question', async () => {
  const error = { code: 'offsite_taken', message: 'Another service sends its backups there.' }
  const taken = {
    ...{ place: 's3://my-games/castle', isAppendOnly: false, isReachable: true, activity: 'waiting', progress: null },
    ...{ problem: error.message, nextRunAt: null, oldestPendingAt: null, surplus: null, mirror: null },
    ...{ pendingBackups: 0, pendingBytes: 0 },
    lastRun: { endedAt: new Date().toISOString(), sentBytes: 0, error },
  }
  await panel.visit('/instance', async (page) => {
    let claims = 0
    await page.route('**/v1/game/offsite', (route) => route.fulfill({ json: taken }))
    await page.route('**/v1/game/offsite/claim', (route) => {
      claims++
      return route.fulfill({ status: 202, json: { ...taken, problem: null, lastRun: null } })
    })
    await page.getByText(error.message).waitFor()
    await page.getByRole('button', { name: 'Take it over' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Take the off-site store over?').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    assert.equal(claims, 0)
    await page.getByRole('button', { name: 'Take it over' }).click()
    const claimed = page.waitForResponse('**/v1/game/offsite/claim')
    await dialog.getByRole('button', { name: 'Take it over' }).click()
    await claimed
    await dialog.waitFor({ state: 'detached' })
    assert.equal(claims, 1)
  })
})

test('a game that is opened on another port of the host gets the cookie, and can do nothing with it', async () => {
  const cookies: string[] = []
  const game = createServer((request, response) => {
    cookies.push(request.headers.cookie ?? '')
    response.setHeader('set-cookie', 'gamekeeper=planted; Path=/v1').end('<h1>Map of the world</h1>')
  }).listen(0, '127.0.0.1')
  await once(game, 'listening')
  try {
    await panel.visit('/', async (page) => {
      await page.getByRole('heading', { name: 'Servers' }).waitFor()
      await page.goto(`http://127.0.0.1:${(game.address() as AddressInfo).port}/`)
      const cookie = cookies[0] ?? ''
      assert.match(cookie, /^gamekeeper=[A-Za-z0-9_-]{43}$/)
      const headers = { cookie, origin: panel.service.url, 'sec-fetch-site': 'same-origin' }
      assert.equal((await fetch(`${panel.service.url}/v1/game/servers`, { headers })).status, 401)
      // Nor does what it has planted keep anybody out.
      await page.goto(panel.service.url)
      await page.getByRole('heading', { name: 'Servers' }).waitFor()
    })
  } finally {
    game.close()
  }
})

test('a link changes who is signed in only when asked to: not where it was declined, nor where it leads to no question', async () => {
  const [declined, elsewhere] = [await linkOf('Ben'), await linkOf('Eve')]
  await panel.visit(
    declined,
    async (page) => {
      await page.getByRole('heading', { name: 'Servers' }).waitFor()
      assert.equal(await page.getByRole('button', { name: 'Ben' }).count(), 1)
    },
    { token: null },
  )
  const again = await linkOf('Ben')
  await panel.visit(
    '/',
    async (page) => {
      await page.getByRole('heading', { name: 'Servers' }).waitFor()
      await page.goto(panel.service.url + elsewhere.replace('/sign-in', '/'))
      await page.getByRole('heading', { name: 'Servers' }).waitFor()
      assert.equal(new URL(page.url()).hash, '')
      await page.goto(panel.service.url + again)
      await page.getByRole('link', { name: 'Stay signed in' }).click()
      await page.getByRole('button', { name: 'admin' }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Welcome back' }).waitFor()
      // It is still good, and works in the same tab as another that is not.
      await page.goto(panel.service.url + declined)
      await page.getByText('This link was used already').waitFor()
      await page.evaluate((fragment) => location.assign(fragment), again)
      await page.getByRole('button', { name: 'Ben' }).waitFor()
    },
    { expected: [/401/] },
  )
})

test('a spent link leaves who is signed in signed in, and signing out reaches the other tabs', async () => {
  const { url } = await client.session.createLink()
  await createClient({ baseUrl: panel.service.url }).session.create({ link: url.split('link=')[1] ?? '' })
  await panel.visit(
    url.slice(panel.service.url.length),
    async (page, context) => {
      await page.getByText('This link was used already').waitFor()
      await page.locator('input[type=password]').fill(panel.service.adminToken)
      await page.locator('button[type=submit]').click()
      await page.getByRole('button', { name: 'admin' }).waitFor()
      await page.goto(url)
      await page.getByRole('button', { name: 'Use the link' }).click()
      await page.getByText('This link was used already').waitFor()
      await page.getByRole('link', { name: 'Stay signed in' }).click()
      await page.getByRole('heading', { name: 'Servers' }).waitFor()
      const other = await context.newPage()
      await other.goto(panel.service.url)
      await other.getByRole('button', { name: 'admin' }).click()
      await other.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Welcome back' }).waitFor()
    },
    { token: null, expected: [/401/] },
  )
})
