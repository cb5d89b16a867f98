// What a newcomer does in the panel alone, with a real game: from the first page to a world that was wrecked and is back.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Route } from 'playwright-core'
import { flyingSquid } from '../../src/agent/games/templates/flying-squid.ts'
import { createWorld } from '../support/backups.ts'
import { freePort } from '../support/free-port.ts'
import { putFlyingSquid, SQUID_VARIABLES } from '../support/minecraft/flying-squid.ts'
import { needs } from '../support/needs.ts'
import { uploadFolderThroughCut, uploadThroughCut } from './support/large-upload.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

const MIB = 1024 * 1024
/** A real game takes its time on a machine that is busy with other tests. */
const STARTING = { timeout: 120_000 }

let panel: PanelUnderTest
before(async () => {
  panel = await startPanel()
})
after(() => panel?.close())

/** As it is shipped, with the settings of tests as its defaults, and without steps that need the network. */
async function squidTemplate(): Promise<string> {
  const { install: _, variables = [], ...template } = flyingSquid
  const defaults: Record<string, unknown> = SQUID_VARIABLES
  return JSON.stringify({
    ...template,
    id: 'octopus',
    name: 'Octopus',
    defaultPort: await freePort(),
    variables: variables.map((each) => ({ ...each, default: defaults[each.name] ?? each.default })),
  })
}

test('from the first page to a running game, a backup, a wrecked world and its return', {
  ...needs('bubblewrap', 'nodejs', 'minecraft'),
}, async () => {
  await panel.client.templates.create(await squidTemplate())
  const { folder } = createWorld(panel.service)
  await panel.visit('/', async (page) => {
    const tab = (name: string) => page.getByRole('main').getByRole('link', { name, exact: true })
    const loaded = page.locator('.xterm-rows').getByText('The world is loaded: players can join')
    await page.getByRole('heading', { name: 'Welcome! Which game shall it be?' }).waitFor()
    await page.getByRole('main').getByRole('link', { name: 'Octopus' }).click()
    // Where its install steps would have put it.
    const putAndStart = async (route: Route) => {
      const { data } = await panel.client.servers.list()
      putFlyingSquid(folder(data[0]?.id ?? ''))
      await route.continue()
    }
    await page.route('**/power', putAndStart, { times: 1 })
    await page.getByRole('button', { name: 'Create and start' }).click()
    await loaded.waitFor(STARTING)
    await tab('Backups').click()
    await page.getByRole('button', { name: 'Back up now' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Before the wreck')
    await dialog.getByRole('button', { name: 'Back up' }).click()
    const backup = page.getByRole('listitem').filter({ hasText: 'Before the wreck' })
    await backup.getByRole('button', { name: 'Restore' }).waitFor()
    await tab('Files').click()
    const world = page.getByRole('row', { name: 'world' })
    await world.click()
    await page.keyboard.press('Delete')
    await world.waitFor({ state: 'detached' })
    await tab('Backups').click()
    await backup.getByRole('button', { name: 'Restore' }).click()
    await dialog.getByRole('button', { name: 'Stop the game and restore' }).click()
    await page.getByText('Before the wreck is restored.').waitFor(STARTING)
    await tab('Files').click()
    await world.waitFor()
    await tab('Overview').click()
    await page.getByRole('main').getByText('Running').first().waitFor(STARTING)
    await loaded.last().waitFor()
  })
  const [server] = (await panel.client.servers.list()).data
  assert.equal(server?.power.state, 'running')
  await panel.client.power.kill(server.id)
})

test('a large file arrives whole, though the connection is cut midway, without what had arrived being sent again', async () => {
  const bytes = 500 * MIB
  const passed = await uploadThroughCut(panel, bytes)
  assert.ok(passed < bytes * 1.5, `${passed} bytes for ${bytes}`)
})

test('a folder of a thousand files is dropped and arrives whole, though the connection is cut midway', async () => {
  const requests = await uploadFolderThroughCut(panel, 1000)
  assert.ok(requests < 100, `${requests} requests for 1000 files`)
})
