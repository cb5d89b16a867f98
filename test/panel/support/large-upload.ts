// A large file, or a folder of many, goes from a real browser to the service over a connection that is cut in the middle.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProxy } from '../../support/unreliable.ts'
import { dropFiles } from './drop.ts'
import type { PanelUnderTest } from './panel.ts'

const PARTS = 64

/** Mostly holes, which cost nothing to make; the marks show whether each part is where it was. */
async function makeFile(path: string, bytes: number): Promise<void> {
  await using file = await open(path, 'w')
  await file.truncate(bytes)
  for (let part = 1; part <= PARTS; part++) await file.write(`part ${part}`, Math.floor((part * bytes) / PARTS) - 16)
}

/** Answers how many bytes have gone over the connection: little more than the file has. */
export async function uploadThroughCut(panel: PanelUnderTest, bytes: number): Promise<number> {
  const { service } = panel
  const { id } = await service.createServer({ name: 'Large' })
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gamekeeper-large-'))
  const source = join(folder.path, 'world.bin')
  await makeFile(source, bytes)
  let passed = 0
  let isCut = false
  await using proxy = await startProxy(service.url, (total) => {
    passed = total
    if (isCut || total < bytes / 2) return
    isCut = true
    proxy.cut()
  })
  await panel.visit(
    `/servers/${id}/files`,
    async (page) => {
      await page.getByLabel('Files to upload').setInputFiles(source)
      await page.getByRole('row', { name: 'world.bin' }).waitFor({ timeout: 300_000 })
    },
    // The browser itself may send a piece again of which the beginning has arrived: 409, and it goes on from there.
    { baseUrl: proxy.url, expected: [/ERR_|409/] },
  )
  assert.ok(isCut)
  execFileSync('cmp', [source, join(service.dataDir, 'servers', id, 'files', 'world.bin')])
  return passed
}

/** So many files in folders of a hundred, dropped as one. Answers how many requests it took. */
export async function uploadFolderThroughCut(panel: PanelUnderTest, files: number): Promise<number> {
  const { service, client } = panel
  const { id } = await service.createServer({ name: 'Many' })
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gamekeeper-many-'))
  const source = join(folder.path, 'world')
  const target = join(service.dataDir, 'servers', id, 'files', 'world')
  for (let file = 0; file < files; file++) {
    const region = join(source, `region-${Math.floor(file / 100)}`)
    mkdirSync(region, { recursive: true })
    writeFileSync(join(region, `${file}.txt`), `file ${file}`)
  }
  let isCut = false
  await using proxy = await startProxy(service.url, () => {
    if (isCut || !existsSync(target) || readdirSync(target).length <= files / 200) return
    isCut = true
    proxy.cut()
  })
  let requests = 0
  await panel.visit(
    `/servers/${id}/files`,
    async (page) => {
      page.on('request', (request) => {
        if (/\/uploads?(\/|$)/.test(new URL(request.url()).pathname)) requests++
      })
      const uploads = page.getByRole('list', { name: 'Uploads' })
      await page.getByText('This folder is empty').waitFor()
      await dropFiles(page, { x: 640, y: 500 }, [source])
      await uploads.waitFor()
      await uploads.waitFor({ state: 'detached', timeout: 300_000 })
    },
    { baseUrl: proxy.url, expected: [/ERR_|409/] },
  )
  assert.ok(isCut)
  execFileSync('diff', ['-r', source, target])
  assert.deepEqual((await client.files.listTrash(id)).data, [])
  const told = await Array.fromAsync(client.activity.all(id, { event: 'file.uploaded' }))
  assert.equal(
    told.reduce((sum, { properties }) => sum + Number(properties.count), 0),
    files,
  )
  return requests
}
