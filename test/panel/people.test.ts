// Who may do what: a friend is invited, comes, looks, and is put out; and what an owner does beside the servers.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Client, createClient } from '../../src/sdk/index.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

let panel: PanelUnderTest
let client: Client

before(async () => {
  panel = await startPanel()
  client = createClient({ baseUrl: panel.service.url, token: panel.service.adminToken })
})

after(() => panel?.close())

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
