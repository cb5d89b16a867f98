// What a page shows is true soon after it has changed, wherever it was changed, and whoever has left meanwhile.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWorld } from '../support/backups.ts'
import { needs } from '../support/needs.ts'
import { until } from '../support/until.ts'
import { type PanelUnderTest, startPanel } from './support/panel.ts'

/** What would come only with the next look of a minute does not come at all: whatever comes was shown soon. */
const SOON = {
  before: () => {
    const [longMs, neverMs] = [20_000, 2 ** 31 - 1]
    for (const name of ['setTimeout', 'setInterval'] as const) {
      const real = window[name] as (work: () => void, ms?: number, ...args: unknown[]) => number
      Object.assign(window, {
        [name]: (work: () => void, ms = 0, ...args: unknown[]) => real(work, ms > longMs ? neverMs : ms, ...args),
      })
    }
  },
}
const WAITING = 'touch begun; until [ -e go ]; do sleep 0.05; done'
const TEMPLATE = {
  ...{ format: 1, id: 'gatehouse', name: 'Gatehouse', runtimes: ['process'], ready: ['Up'] },
  start: { args: ['/bin/sh', '-c', 'echo Up; while read -r line; do [ "$line" = stop ] && exit 0; done'] },
  stop: [{ command: 'stop', timeoutSeconds: 10 }],
  install: [{ do: 'run', args: ['/bin/sh', '-c', WAITING] }],
}

let panel: PanelUnderTest
before(async () => {
  panel = await startPanel()
  await panel.client.templates.create(JSON.stringify(TEMPLATE))
})
after(() => panel?.close())

const folderOf = (id: string) => createWorld(panel.service).folder(id)

test(
  'a game that is being installed is started afterwards, though its page was closed',
  needs('bubblewrap'),
  async () => {
    const { client } = panel
    let id = ''
    await panel.visit('/servers/new/gatehouse', async (page) => {
      await page.getByRole('button', { name: 'Create and start' }).click()
      await page.getByText('Once it is installed, also if you leave').waitFor()
      id = (await client.servers.list()).data[0]?.id ?? ''
    })
    await until(async () => existsSync(join(folderOf(id), 'begun')))
    writeFileSync(join(folderOf(id), 'go'), '')
    await until(async () => (await client.servers.read(id)).power.state === 'running')
    await client.power.kill(id)
  },
)

test(
  'an installation that has failed says so on the page of its server, until it is tried again',
  needs('bubblewrap'),
  async () => {
    const { client } = panel
    const install = [{ do: 'run', args: ['/bin/sh', '-c', 'exit 3'] }]
    await client.templates.create(JSON.stringify({ ...TEMPLATE, id: 'ruin', name: 'Ruin', install }))
    const { id } = await client.servers.create({ name: 'Ruin', game: 'ruin' })
    await client.servers.install(id, { start: true })
    await panel.visit(`/servers/${id}`, (page) => page.getByText('It could not be installed.').waitFor())
  },
)

test('a folder of several pages shows what has changed in sight, at its end too', async () => {
  const { id } = await panel.service.createServer({ name: 'Wide' })
  const put = (name: string, text = 'x') => writeFileSync(join(folderOf(id), name), text)
  mkdirSync(folderOf(id), { recursive: true })
  for (let index = 100; index < 500; index++) put(`file-${index}.txt`)
  await panel.visit(
    `/servers/${id}/files`,
    async (page) => {
      const grid = page.getByRole('grid', { name: 'Files' })
      const last = page.getByRole('row', { name: 'file-499.txt' })
      await page.getByRole('row', { name: 'file-100.txt' }).waitFor()
      await until(async () => {
        await grid.evaluate((element) => element.scrollTo({ top: element.scrollHeight }))
        return await last.isVisible()
      })
      put('file-499.txt', 'y'.repeat(2048))
      await last.getByText('2 KiB').waitFor()
      put('file-498a.txt')
      await page.getByRole('row', { name: 'file-498a.txt' }).waitFor()
      await grid.evaluate((element) => element.scrollTo({ top: 0 }))
      await page.getByRole('row', { name: 'file-100.txt' }).waitFor()
      put('file-0.txt')
      await page.getByRole('row', { name: 'file-0.txt' }).waitFor()
    },
    SOON,
  )
})

test('cards name the game and say when the disk was measured; a template that is renamed is so at once', async () => {
  const { client } = panel
  await client.servers.create({ name: 'Keep', game: 'gatehouse' })
  await panel.visit(
    '/',
    async (page) => {
      const card = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'Keep' }) })
      await card.getByText('Gatehouse').waitFor()
      await card.getByText(/Disk measured/).waitFor()
      await client.templates.create(JSON.stringify({ ...TEMPLATE, name: 'Barbican' }), { replace: true })
      await card.getByText('Barbican').waitFor()
    },
    SOON,
  )
})

test('a problem is on the page of the instance as soon as it has happened', async () => {
  const { client } = panel
  const { id } = await client.servers.create({ name: 'Tower' })
  await client.files.write(id, '/broken.zip', 'no archive')
  await panel.visit(
    '/instance',
    async (page) => {
      const problems = page.getByText('A job failed').and(page.locator(':visible'))
      await page.getByRole('heading', { name: 'Problems' }).waitFor()
      const before = await problems.count()
      await client.files.unpack(id, { path: '/broken.zip' })
      await problems.nth(before).waitFor()
    },
    SOON,
  )
})

test('a folder is uploaded by its button, with everything below it', async () => {
  const { id } = await panel.service.createServer({ name: 'Folders' })
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gamekeeper-folder-'))
  await mkdir(join(folder.path, 'pack', 'assets'), { recursive: true })
  await writeFile(join(folder.path, 'pack', 'pack.mcmeta'), '{}')
  await writeFile(join(folder.path, 'pack', 'assets', '100%.txt'), 'blue')
  await panel.visit(`/servers/${id}/files`, async (page) => {
    await page.getByLabel('Folder to upload').setInputFiles(join(folder.path, 'pack'))
    await page.getByRole('row', { name: 'pack' }).waitFor()
    await page.getByRole('list', { name: 'Uploads' }).waitFor({ state: 'detached' })
  })
  const { bytes } = await panel.client.files.read(id, '/pack/assets/100%.txt')
  assert.equal(await new Response(bytes).text(), 'blue')
})

test('the bar of the console has one line on a phone, with all of its buttons', needs('bubblewrap'), async () => {
  const { client } = panel
  const args = [
    '/bin/sh',
    '-c',
    'i=0; while [ $i -lt 700 ]; do i=$((i + 1)); echo "Loading chunk $i"; done; read -r line',
  ]
  await client.templates.create(JSON.stringify({ ...TEMPLATE, id: 'loud', name: 'Loud', install: [], start: { args } }))
  const { id } = await client.servers.create({ name: 'Phone', game: 'loud' })
  await client.power.start(id)
  await until(async () => (await client.console.read(id, { q: 'chunk 700' })).data.length > 0)
  await panel.visit(`/servers/${id}`, async (page) => {
    await page.setViewportSize({ width: 360, height: 740 })
    const bar = page.getByRole('region', { name: 'Console' }).locator('> div').first()
    await bar.getByRole('button', { name: 'Older lines' }).waitFor()
    const box = await bar.boundingBox()
    const last = await bar.getByRole('button', { name: 'Save these lines as a file' }).boundingBox()
    assert.ok(box && box.height < 50, `${box?.height} px`)
    assert.ok(last && last.x + last.width <= box.x + box.width, 'the last button is within it')
  })
  await client.power.kill(id)
})
