// What a browser keeps belongs to a person: uploads that wait, drafts, and where one is signed in.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { signIn as signInElsewhere } from '../support/sessions.ts'
import { type PanelUnderTest, signIn, startPanel } from './support/panel.ts'

const NAMES = ['a.txt', 'b.txt', 'c.txt', 'd.txt', 'e.txt']

let panel: PanelUnderTest
let serverId: string
let friend: { id: string; token: string }

before(async () => {
  panel = await startPanel()
  serverId = (await panel.service.createServer()).id
  await panel.client.files.write(serverId, '/server.properties', 'motd=Welcome\n')
  friend = await panel.service.mint(['servers:read', 'files:read', 'files:write'], [serverId], { name: 'Ben' })
})

after(() => panel?.close())

const namesOnServer = async () =>
  (await Array.fromAsync(panel.client.files.all(serverId, { path: '/' }))).map(({ name }) => name)

async function signOut(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Welcome back' }).waitFor()
}

test('Where a session ends in the middle of an upload, the files that are left wait, and go on after the same person has signed in again.', async () => {
  await panel.visit(
    `/servers/${serverId}/files`,
    async (page) => {
      const row = (name: string) => page.getByRole('row', { name })
      const uploads = page.getByRole('list', { name: 'Uploads' })
      await row('server.properties').waitFor()
      const held = Promise.withResolvers<void>()
      await page.route('**/files/*/upload', async (route) => {
        await held.promise
        await route.continue()
      })
      await page
        .getByLabel('Files to upload')
        .setInputFiles(NAMES.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(name) })))
      await uploads.getByText('e.txt').waitFor()
      await panel.client.sessions.endOthers()
      held.resolve()
      await page.getByRole('heading', { name: 'Welcome back' }).waitFor()
      await signIn(page, friend.token)
      await row('server.properties').waitFor()
      assert.equal(await uploads.count(), 0)
      assert.deepEqual(await namesOnServer(), ['server.properties'])
      await signOut(page, 'Ben')
      await signIn(page, panel.service.adminToken)
      for (const name of NAMES) await row(name).waitFor()
    },
    { expected: [/401/] },
  )
  assert.deepEqual((await namesOnServer()).sort(), [...NAMES, 'server.properties'])
  const { bytes } = await panel.client.files.read(serverId, '/e.txt')
  assert.equal(await new Response(bytes).text(), 'e.txt')
})

test('A draft of the editor is shown to whoever typed it, and to nobody else who signs in in the same browser.', async () => {
  await panel.visit(`/servers/${serverId}/files?edit=server.properties`, async (page) => {
    const text = page.getByRole('textbox', { name: 'Text of server.properties' })
    const notice = page.getByText('An unsaved draft from an earlier visit is shown.')
    await text.press('Control+Home')
    await page.keyboard.type('secret')
    await page.getByText('Unsaved', { exact: true }).waitFor()
    await signOut(page, 'admin')
    await signIn(page, friend.token)
    await text.waitFor()
    assert.doesNotMatch(await text.innerText(), /secret/)
    assert.equal(await notice.count(), 0)
    await signOut(page, 'Ben')
    await signIn(page, panel.service.adminToken)
    await notice.waitFor()
    assert.match(await text.innerText(), /^secret/)
  })
})

test('one sees where one is signed in, and ends the others from there', async () => {
  const { service } = panel
  const elsewhere = await signInElsewhere(service, { token: service.adminToken })
  await signInElsewhere(service, { token: friend.token })
  await panel.visit('/people', async (page) => {
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'admin', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Where you are signed in' }).click()
    await dialog.getByText('this one').waitFor()
    assert.match(await dialog.getByRole('listitem').filter({ hasText: 'this one' }).innerText(), /Chrome · Linux/)
    await dialog.getByRole('button', { name: 'Sign out everywhere else' }).click()
    await dialog
      .getByRole('button', { name: /^End the session/ })
      .first()
      .waitFor({ state: 'detached' })
    assert.equal(await dialog.getByRole('listitem').count(), 1)
    assert.equal((await elsewhere.call('GET', '/session')).status, 401)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Devices of Ben' }).click()
    await dialog.getByRole('button', { name: 'Sign out everywhere' }).click()
    await dialog.getByText('Nowhere at the moment.').waitFor()
  })
  assert.deepEqual((await panel.client.sessions.listOf(friend.id)).data, [])
})
