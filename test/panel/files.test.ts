// Files and backups in a real browser. What tenants upload is hostile: none of it may act as whoever looks at it.
import assert from 'node:assert/strict'
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { dropFiles } from './support/drop.ts'
import { furnish } from './support/furnish.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

let panel: PanelUnderTest
let serverId: string

before(async () => {
  panel = await startPanel()
  serverId = await furnish(panel.service.url, panel.service.adminToken)
})

after(() => panel?.close())

const namesIn = async (path: string) =>
  (await Array.fromAsync(panel.client.files.all(serverId, { path }))).map(({ name }) => name)
const textOf = async (path: string) => new Response((await panel.client.files.read(serverId, path)).bytes).text()

/** Makes a folder with the session of whoever runs it. */
const attack = (folder: string) =>
  `let proof = ''; try { proof = localStorage.getItem('gamekeeper-session') } catch {}` +
  ` fetch('/v1/game/files/${serverId}/folder', {method: 'POST', headers: {'content-type': 'application/json',` +
  ` 'x-gamekeeper-session': proof}, body: JSON.stringify({path: '/', name: '${folder}'})})`

const attackFiles = () => ({
  'attack.html': `<!doctype html><script>${attack('by-html')}</script><img src=x onerror="${attack('by-image').replaceAll('"', '&quot;')}">`,
  'attack.svg': `<svg xmlns="http://www.w3.org/2000/svg" onload="${attack('by-svg').replaceAll('"', '&quot;')}"/>`,
  'attack.pdf': `%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(${attack('by-pdf')})>>>>endobj\ntrailer<</Root 1 0 R>>`,
})

/** As a browser would that shows what it should download, and takes it for a page. */
async function openShown(page: Page, url: string, proof: string): Promise<void> {
  await page.route(url, async (route) => {
    const response = await route.fetch({ headers: { ...route.request().headers(), 'x-gamekeeper-session': proof } })
    const { 'content-disposition': _, ...headers } = response.headers()
    const type = url.includes('.svg') ? 'image/svg+xml' : 'text/html'
    await route.fulfill({ response, headers: { ...headers, 'content-type': type } })
  })
  await page.goto(url)
  await page.unroute(url)
}

async function openAsDownload(page: Page, url: string): Promise<void> {
  const download = page.waitForEvent('download')
  // Nothing is opened, which is an error for whoever wanted to go there.
  await page.goto(url).catch(() => {})
  await (await download).cancel()
}

test('an uploaded page, drawing or document does nothing as the user, whether previewed, downloaded or opened by its link', async () => {
  const { client } = panel
  const files = attackFiles()
  for (const [name, content] of Object.entries(files)) await client.files.write(serverId, `/${name}`, content)
  await client.files.write(serverId, '/attack.png', files['attack.svg'])
  const backup = await client.backups.create(serverId)
  await client.backups.wait(serverId, backup.id)
  const expected = [/Blocked script execution/, /Content Security Policy/, /40[14]/]
  await panel.visit(
    `/servers/${serverId}/files?edit=attack.html`,
    async (page) => {
      await page.getByRole('textbox', { name: 'Text of attack.html' }).waitFor()
      await page.goto(`${panel.service.url}/servers/${serverId}/files?edit=attack.svg`)
      await page.getByRole('textbox', { name: 'Text of attack.svg' }).waitFor()
      await page.goto(`${panel.service.url}/servers/${serverId}/files?view=attack.png`)
      await page.getByText('This is no picture that can be shown here').waitFor()
      assert.equal(await page.locator('main img').count(), 0)
      const proof = (await page.evaluate(() => localStorage.getItem('gamekeeper-session'))) ?? ''
      for (const name of Object.keys(files)) {
        const api = `${panel.service.url}/v1/game`
        const content = `${api}/files/${serverId}/content?path=/${name}`
        const inBackup = `${api}/backups/${serverId}/${backup.id}/files/content?path=/${name}`
        const { url: link } = await client.files.requestDownload(serverId, { path: `/${name}` })
        await openAsDownload(page, link)
        for (const url of [content, inBackup]) assert.equal((await page.goto(url))?.status(), 401)
        for (const url of [content, inBackup, link]) await openShown(page, url, proof)
      }
      // The attack itself is real: in a page of ours it does what it says.
      await page.goto(`${panel.service.url}/servers/${serverId}/files`)
      await page.evaluate(attack('by-the-panel'))
      await page.getByRole('row', { name: 'by-the-panel' }).waitFor()
    },
    { expected },
  )
  const made = (await namesIn('/')).filter((name) => name.startsWith('by-'))
  assert.deepEqual(made, ['by-the-panel'])
})

test('an upload goes on by itself after the page was reloaded in the middle of it', async () => {
  const content = 'upload'.repeat(1_500_000)
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gamekeeper-upload-'))
  const source = join(folder.path, 'big.bin')
  await writeFile(source, content)
  await panel.visit(`/servers/${serverId}/files`, async (page) => {
    const offsets: string[] = []
    let isHeld = true
    await page.route('**/uploads/**', async (route) => {
      const request = route.request()
      if (request.method() !== 'PATCH') return route.continue()
      offsets.push(request.headers()['upload-offset'] ?? '')
      // The second piece never arrives: the page is reloaded before.
      if (isHeld && offsets.length > 1) return
      return route.continue()
    })
    await page.getByLabel('Files to upload').setInputFiles(source)
    await page.getByText('4 MiB / 8.6 MiB').waitFor()
    isHeld = false
    offsets.length = 0
    await page.reload()
    await page.getByRole('row', { name: 'big.bin' }).waitFor()
    assert.equal(offsets[0], String(4 * 1024 * 1024))
  })
  assert.equal(await textOf('/big.bin'), content)
})

test('small files that had arrived when the page was reloaded are there once, and each that finds no room says so', async () => {
  const { id } = await panel.service.createServer({ name: 'Small', limits: { diskBytes: 700 * 1024 } })
  const files = (names: string[], bytes: number) =>
    names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.alloc(bytes, name) }))
  const LARGER = ['d.txt', 'e.txt', 'f.txt', 'g.txt', 'h.txt']
  const uploaded = async () => (await panel.client.activity.list(id, { event: 'file.uploaded' })).data
  await panel.visit(
    `/servers/${id}/files`,
    async (page) => {
      const row = (name: string) => page.getByRole('row', { name })
      const arrived = Promise.withResolvers<void>()
      // It arrives, and its answer is lost.
      const swallow = async (route: Route) => {
        await route.fetch()
        arrived.resolve()
      }
      await page.route('**/uploads/**', swallow, { times: 1 })
      await page.getByLabel('Files to upload').setInputFiles(files(['a.txt', 'b.txt', 'c.txt'], 10))
      await arrived.promise
      await page.reload()
      await row('c.txt').waitFor()
      await page.getByRole('list', { name: 'Uploads' }).waitFor({ state: 'detached' })
      assert.equal((await uploaded()).length, 1)
      await page.getByLabel('Files to upload').setInputFiles(files(LARGER, 200 * 1024))
      const uploads = page.getByRole('list', { name: 'Uploads' }).getByRole('listitem')
      const refused = uploads.filter({ hasText: 'disk quota' })
      await refused.nth(1).waitFor()
      // Those that found room have arrived, and are shown no more.
      await uploads.nth(2).waitFor({ state: 'detached' })
      assert.equal(await refused.count(), 2)
      await refused.first().getByText('Delete files or empty the trash').waitFor()
    },
    { expected: [/409/] },
  )
  assert.deepEqual((await panel.client.files.listTrash(id)).data, [])
  assert.equal((await panel.client.files.list(id, { path: '/' })).data.length, 6)
})

test('files are renamed together, moved and packed, brought back from the trash and from a backup', async () => {
  const { client } = panel
  for (const name of ['one.txt', 'two.txt']) await client.files.write(serverId, `/mods/${name}`, name)
  await client.files.write(serverId, '/server.properties', 'motd=Wrecked\n')
  await panel.visit(`/servers/${serverId}/files/mods`, async (page) => {
    const row = (name: string) => page.getByRole('row', { name })
    const menu = async (item: string) => {
      await page.getByRole('button', { name: 'More for what is selected' }).click()
      await page.getByRole('menuitem', { name: item }).click()
    }
    await row('one.txt').click()
    await page.keyboard.press('Control+a')
    await page.keyboard.press('F2')
    await page.getByLabel('Find', { exact: true }).fill('.txt')
    await page.getByLabel('Replace with').fill('.off')
    await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
    await row('one.off').click()
    await menu('Move…')
    await page.getByRole('dialog').getByRole('button', { name: '..' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'world' }).click()
    await page.getByRole('button', { name: 'Move here' }).click()
    await row('one.off').waitFor({ state: 'detached' })
    await row('two.off').click()
    await menu('Pack…')
    await page.getByRole('dialog').getByRole('button', { name: 'Pack' }).click()
    await row('two.off.zip').waitFor()
    await row('two.off.zip').click()
    await page.keyboard.press('Delete')
    await row('two.off.zip').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Trash' }).click()
    await page.getByRole('button', { name: 'Bring back /mods/two.off.zip' }).click()
    await page.getByText('It is back as /mods/two.off.zip').waitFor()
    await page.goto(`${panel.service.url}/servers/${serverId}/files?versions=server.properties`)
    await page.getByRole('region', { name: 'Differences' }).getByText('motd=Wrecked').waitFor()
    await page.getByRole('button', { name: 'Bring this one back' }).click()
    await page.getByText('server.properties is back.').waitFor()
  })
  assert.deepEqual(await namesIn('/mods'), ['two.off', 'two.off.zip'])
  assert.ok((await namesIn('/world')).includes('one.off'))
  assert.equal(await textOf('/server.properties'), 'motd=Welcome to the castle\nmax-players=20\n')
})

test('chosen files are restored while the game runs, which is said beforehand, and taken back afterwards', async () => {
  const { client } = panel
  await client.files.write(serverId, '/world/level.dat', 'wrecked')
  await client.files.write(serverId, '/banned-players.json', '["stays"]\n')
  await panel.visit(`/servers/${serverId}/backups`, async (page) => {
    await page.getByRole('link', { name: 'Before the siege' }).click()
    await page.getByRole('link', { name: 'world' }).click()
    await page.getByRole('checkbox', { name: 'Choose level.dat' }).check()
    await page.getByRole('button', { name: 'Restore 1 chosen' }).click()
    await page.getByText('1 file becomes what it was').waitFor()
    await page.getByText('The game is stopped.').waitFor()
    await page.getByRole('button', { name: 'Stop the game and restore' }).click()
    await page.getByText('Before the siege is restored.').waitFor()
    assert.equal(await textOf('/world/level.dat'), 'level')
    assert.equal(await textOf('/banned-players.json'), '["stays"]\n')
    await page.getByRole('link', { name: 'All backups' }).click()
    await page.getByRole('button', { name: 'Take it back' }).click()
    await page.getByRole('button', { name: 'Stop the game and restore' }).click()
    await page.getByText('Before restoring Before the siege is restored.').waitFor()
    await page.getByRole('button', { name: 'Take it back' }).waitFor({ state: 'detached' })
  })
  assert.equal(await textOf('/world/level.dat'), 'wrecked')
})

test('a text is saved once however often it is asked for, and is not lost where its file has gone', async () => {
  const { client } = panel
  await client.files.write(serverId, '/notes.txt', '')
  await panel.visit(
    `/servers/${serverId}/files?edit=notes.txt`,
    async (page) => {
      const text = page.getByRole('textbox', { name: 'Text of notes.txt' })
      const saved = page.getByText('notes.txt is saved.').last()
      const conflict = page.getByText('notes.txt has changed on the server')
      const held = Promise.withResolvers<void>()
      let writes = 0
      let isAway = false
      await page.route('**/content?*', async (route) => {
        if (route.request().method() !== 'PUT') return isAway ? route.abort() : route.continue()
        writes++
        isAway = true
        await held.promise
        return route.continue()
      })
      await text.press('a')
      await text.press('Control+s')
      await text.press('Control+s')
      await text.press('b')
      held.resolve()
      // What was written cannot be read back, and was saved nevertheless.
      await saved.waitFor()
      assert.equal(writes, 1)
      const draft = await page.evaluate(
        (key) => localStorage.getItem(key),
        `gamekeeper-draft:tok_admin:${serverId}:/notes.txt`,
      )
      assert.deepEqual(JSON.parse(draft ?? ''), { text: 'ab', etag: '"0"', base: 'a' })
      await page.unroute('**/content?*')
      await text.press('Control+s')
      await page.getByText('Unsaved').waitFor({ state: 'detached' })
      assert.equal(await textOf('/notes.txt'), 'ab')
      assert.equal(await conflict.count(), 0)
      await text.press('c')
      await client.files.delete(serverId, { files: ['notes.txt'] })
      await text.press('Control+s')
      await page.getByRole('button', { name: 'Save it anew' }).click()
      await page.getByText('notes.txt is no longer there').waitFor({ state: 'detached' })
      assert.equal(await textOf('/notes.txt'), 'abc')
    },
    { expected: [/412|404|ERR_FAILED/] },
  )
})

test('a download that fails leaves the page where it is', async () => {
  await panel.visit(`/servers/${serverId}/files`, async (page) => {
    await page.getByRole('row', { name: 'server.properties' }).click()
    const download = page.waitForEvent('download')
    await page.route('**/download?*', async (route) => {
      const answer = await route.fetch()
      const { url, ...rest } = await answer.json()
      await route.fulfill({ response: answer, json: { ...rest, url: `${url}x` } })
    })
    await page.getByRole('button', { name: 'Download' }).click()
    assert.ok(await (await download).failure())
    await page.getByRole('row', { name: 'server.properties' }).waitFor()
    assert.equal(new URL(page.url()).pathname, `/servers/${serverId}/files`)
  })
})

test('a name is typed where it stands; what changes is shown before the service has answered, and taken back where it refuses', async () => {
  const { client } = panel
  for (const name of ['apple.txt', 'pear.txt']) await client.files.write(serverId, `/fruit/${name}`, name)
  await panel.visit(
    `/servers/${serverId}/files/fruit`,
    async (page) => {
      const row = (name: string) => page.getByRole('row', { name })
      const rename = async (from: string, to: string, key: string) => {
        await row(from).click()
        await page.keyboard.press('F2')
        await page.getByLabel(`New name of ${from}`).waitFor()
        await page.keyboard.type(to)
        await page.keyboard.press(key)
      }
      const held = Promise.withResolvers<void>()
      await page.route('**/move', async (route) => {
        await held.promise
        await route.continue()
      })
      // The part before the ending is selected, and letters and arrows are those of the text.
      await rename('apple.txt', 'p lum', 'ArrowLeft')
      await page.keyboard.press('Enter')
      await row('p lum.txt').waitFor()
      assert.deepEqual(await namesIn('/fruit'), ['apple.txt', 'pear.txt'])
      held.resolve()
      await page.waitForResponse((response) => response.url().endsWith('/move'))
      assert.deepEqual(await namesIn('/fruit'), ['p lum.txt', 'pear.txt'])
      await page.locator('[role=row]:focus', { hasText: 'p lum.txt' }).waitFor()
      await rename('pear.txt', 'other', 'Escape')
      await page.locator('[role=row]:focus', { hasText: 'pear.txt' }).waitFor()
      // A name that is taken.
      await rename('pear.txt', 'p lum', 'Enter')
      await page.getByText('pear.txt could not be renamed').waitFor()
      await row('pear.txt').waitFor()
    },
    { expected: [/409/] },
  )
  assert.deepEqual(await namesIn('/fruit'), ['p lum.txt', 'pear.txt'])
})

test('files and folders are dropped anywhere in the window, and where nothing takes them the page stays as it is', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gamekeeper-drop-'))
  await mkdir(join(folder.path, 'pack', 'assets'), { recursive: true })
  await writeFile(join(folder.path, 'pack', 'pack.mcmeta'), '{}')
  await writeFile(join(folder.path, 'pack', 'assets', 'sky.txt'), 'blue')
  await writeFile(join(folder.path, 'single.txt'), 'one')
  const files = [join(folder.path, 'pack'), join(folder.path, 'single.txt')]
  /** Over the navigation. */
  const aside = { x: 60, y: 600 }
  await panel.visit(`/servers/${serverId}/files/mods`, async (page) => {
    await page.getByRole('row', { name: 'two.off.zip' }).waitFor()
    await dropFiles(page, aside, files)
    await page.getByRole('row', { name: 'pack' }).waitFor()
    await page.getByRole('row', { name: 'single.txt' }).waitFor()
    await page.goto(`${panel.service.url}/servers/${serverId}/settings`)
    await page.getByLabel('Name', { exact: true }).waitFor()
    await dropFiles(page, aside, files)
    assert.equal(new URL(page.url()).pathname, `/servers/${serverId}/settings`)
    await page.getByLabel('Name', { exact: true }).waitFor()
  })
  assert.equal(await textOf('/mods/pack/assets/sky.txt'), 'blue')
  assert.equal(await textOf('/mods/pack/pack.mcmeta'), '{}')
})

test('a picture or a log that was found is looked at, and a file that is no text can be downloaded', async () => {
  const { client } = panel
  await client.files.write(serverId, '/found/latest.log', 'Found it\n')
  await client.files.write(serverId, '/found/level.bin', new Blob([new Uint8Array([0, 1, 2, 255])]))
  await panel.visit(`/servers/${serverId}/files/found?search=l`, async (page) => {
    await page.getByRole('link', { name: '/found/latest.log' }).click()
    await page.locator('pre', { hasText: 'Found it' }).waitFor()
    await page.goBack()
    await page.getByRole('link', { name: '/found/level.bin' }).click()
    await page.getByText('This is not a text').waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    assert.equal((await download).suggestedFilename(), 'level.bin')
  })
})
