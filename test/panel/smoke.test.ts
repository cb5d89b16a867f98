// The panel in a real browser against a real service, under the Content-Security-Policy that it is served with.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Locator, Page, Route } from 'playwright-core'
import { furnish } from './support/furnish.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

let panel: PanelUnderTest
let serverId: string

before(async () => {
  panel = await startPanel()
  serverId = await furnish(panel.service.url, panel.service.adminToken)
})

after(() => panel?.close())

/** As somebody types: `fill` edits the page behind the editor's back, with style attributes that the policy refuses. */
async function retype(page: Page, field: Locator, text: string): Promise<void> {
  await field.press('Control+a')
  await field.press('Delete')
  await page.keyboard.type(text)
}

test('signs in with a token that no script can read afterwards, and out again', async () => {
  await panel.visit('/', async (page, context) => {
    await page.getByRole('heading', { name: 'Servers' }).waitFor()
    const [cookie] = await context.cookies()
    assert.equal(cookie?.httpOnly, true)
    const stored = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
    )
    assert.doesNotMatch(stored, /gk_/)
    await page.getByRole('button', { name: 'admin' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Welcome back' }).waitFor()
  })
})

test('a link signs in once, and leaves nothing of itself in the address', async () => {
  const { url } = await panel.client.session.createLink()
  const path = url.slice(panel.service.url.length)
  await panel.visit(
    path,
    async (page) => {
      await page.getByRole('heading', { name: 'Servers' }).waitFor()
      assert.equal(new URL(page.url()).hash, '')
    },
    { token: null },
  )
  await panel.visit(path, (page) => page.getByText('This link was used already').waitFor(), {
    token: null,
    expected: [/401/],
  })
})

test('a game is started, commanded, followed and stopped from its page', async () => {
  const { client } = panel
  await panel.visit(`/servers/${serverId}`, async (page) => {
    await page.locator('.xterm-rows', { hasText: 'You said: list' }).waitFor()
    await page.getByRole('textbox', { name: 'Command' }).fill('say from the panel')
    await page.getByRole('textbox', { name: 'Command' }).press('Enter')
    await page.locator('.xterm-rows', { hasText: 'You said: say from the panel' }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('button', { name: 'Start', exact: true }).waitFor()
    assert.equal((await client.servers.read(serverId)).power.state, 'stopped')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByRole('button', { name: 'Restart' }).waitFor()
  })
})

test('files are uploaded, renamed, deleted, and put back by Undo', async () => {
  await panel.visit(`/servers/${serverId}/files`, async (page) => {
    const row = (name: string) => page.getByRole('row', { name })
    await row('server.properties').waitFor()
    await page.getByLabel('Files to upload').setInputFiles({
      name: 'whitelist.json',
      mimeType: 'application/json',
      buffer: Buffer.from('[]\n'),
    })
    await row('whitelist.json').click()
    await page.keyboard.press('F2')
    await page.getByLabel('New name of whitelist.json').fill('friends.json')
    await page.keyboard.press('Enter')
    await row('friends.json').click()
    await page.keyboard.press('Delete')
    await page.getByText('friends.json is in the trash').waitFor()
    await row('friends.json').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Undo' }).click()
    await row('friends.json').waitFor()
  })
})

test('a file is edited in two browsers, and what one has saved the other does not overwrite unseen', async () => {
  const { client } = panel
  const read = async () => new Response((await client.files.read(serverId, '/server.properties')).bytes).text()
  await panel.visit(
    `/servers/${serverId}/files?edit=server.properties`,
    async (page) => {
      const text = page.getByRole('textbox', { name: 'Text of server.properties' })
      await retype(page, text, 'motd=By hand')
      await text.press('Control+s')
      await page.getByText('server.properties is saved.').waitFor()
      assert.equal(await read(), 'motd=By hand')
      await retype(page, text, 'motd=Again by hand')
      // In another browser.
      await panel.visit(`/servers/${serverId}/files?edit=server.properties`, async (other) => {
        const theirs = other.getByRole('textbox', { name: 'Text of server.properties' })
        await retype(other, theirs, 'motd=By another')
        await theirs.press('Control+s')
        await other.getByText('server.properties is saved.').waitFor()
      })
      await text.press('Control+s')
      await page.getByText('server.properties has changed on the server').waitFor()
      assert.equal(await read(), 'motd=By another')
      await page.getByRole('button', { name: 'Keep mine' }).click()
      await page.getByText('server.properties has changed on the server').waitFor({ state: 'detached' })
      assert.equal(await read(), 'motd=Again by hand')
    },
    { expected: [/412/] },
  )
})

test('a backup is made, and a wrecked world restored from it', async () => {
  const { client } = panel
  await client.power.kill(serverId)
  await panel.visit(`/servers/${serverId}/backups`, async (page) => {
    await page.getByRole('button', { name: 'Back up now' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Good world')
    await page.getByText('Left out: 0 files, 0 B.').waitFor()
    await page.getByRole('dialog').getByLabel('Leave out').fill('*.log')
    await page.getByText('Left out: 1 file, 18 B.').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Back up' }).click()
    const item = page.getByRole('listitem').filter({ hasText: 'Good world' })
    await item.getByRole('button', { name: 'Restore' }).waitFor()
    await client.files.write(serverId, '/world/level.dat', 'wrecked')
    await item.getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await page.getByText('Good world is restored.').waitFor()
    const { bytes } = await client.files.read(serverId, '/world/level.dat')
    assert.equal(await new Response(bytes).text(), 'level')
  })
})

test('activity arrives while somebody looks', async () => {
  const { client } = panel
  await panel.visit(`/servers/${serverId}/activity`, async (page) => {
    await page.getByText('created the server').waitFor()
    await client.files.makeFolder(serverId, { path: '/', name: 'made-meanwhile' })
    await page.getByText('/made-meanwhile', { exact: true }).waitFor()
  })
})

test('lists that are read page by page show each thing once, whatever comes and goes meanwhile', async () => {
  const { client } = panel
  const { id } = await client.servers.create({ name: 'Busy' })
  const names = Array.from({ length: 120 }, (_, index) => `f${index}`)
  for (const name of names) await client.files.makeFolder(id, { path: '/', name })
  await panel.visit(`/servers/${id}/activity`, async (page) => {
    const entries = page.getByRole('main').locator('ol > li')
    await entries.nth(49).waitFor()
    // What arrives while an older page is on its way stays.
    const onceArrived = async (route: Route) => {
      await client.files.makeFolder(id, { path: '/', name: 'meanwhile' })
      await page.getByText('/meanwhile', { exact: true }).waitFor()
      await route.continue()
    }
    await page.route('**/activity?*cursor=*', onceArrived, { times: 1 })
    for (const count of [101, 122]) {
      await page.getByRole('button', { name: 'Earlier' }).click()
      await entries.nth(count - 1).waitFor()
    }
    const texts = (await entries.allInnerTexts()).join('\n')
    for (const name of ['meanwhile', ...names]) assert.equal(texts.split(`/${name}\n`).length, 2, name)

    await client.files.delete(id, { files: names })
    await page.goto(`${panel.service.url}/servers/${id}/files?show=trash`)
    const items = page.getByRole('region', { name: 'Trash' }).getByRole('listitem')
    await items.nth(99).waitFor()
    await page.getByRole('button', { name: 'More' }).click()
    await items.nth(119).waitFor()
    const last = items.last()
    await last.scrollIntoViewIfNeeded()
    const before = await last.boundingBox()
    const path = await last.locator('p').first().innerText()
    await client.files.delete(id, { files: ['meanwhile'] })
    await items.nth(120).waitFor()
    const again = await items.filter({ has: page.getByText(path, { exact: true }) }).boundingBox()
    assert.ok(Math.abs((again?.y ?? 0) - (before?.y ?? 0)) < 2, 'what somebody looks at does not move')
    const paths = await items.locator('p:first-child').allInnerTexts()
    assert.equal(new Set(paths).size, 121)
  })
})
