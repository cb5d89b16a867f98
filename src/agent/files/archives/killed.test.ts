// Once the first item of an archive has moved into place, the rest follows, whatever ends the process.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { layout } from '../../layout.ts'
import { createAgentFiles } from '../index.ts'
import { fillTree, makeTree } from '../trees.testing.ts'
import { entry, serverId, writeArchiveTo } from './archives.testing.ts'
import { context, killUnpacking } from './killed.testing.ts'
import { type UnpackWork, unpack } from './unpack.ts'

const NEW = { 'new/deep/a': 'new', b: 'new', c: 'new', 'there/d': 'new' }
const OLD = { 'into/there/own': 'own' }

for (const overwrite of [false, true]) {
  const old = overwrite ? { ...OLD, 'into/b': 'old', 'into/there/d': 'old' } : OLD

  test(`killed at any change of an unpack ${overwrite ? 'that replaces' : 'of what is new'}, the next start completes it`, async (t) => {
    for (let atChange = 1; ; atChange++) {
      const dataDir = makeTree(t, { [`servers/${serverId}/files/`]: '' })
      const places = layout(dataDir)
      const { files, staging, trash } = places.server(serverId)
      fillTree(files, old)
      await writeArchiveTo(
        join(files, 'a.tar'),
        'tar',
        Object.entries(NEW).map(([path, text]) => entry(path, { text })),
      )
      const work: UnpackWork = { kind: 'files.unpack', path: '/a.tar', directory: '/into', overwrite }
      const isDone = await killUnpacking(dataDir, work, atChange)

      const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
      await agent.start()
      const server = agent.server(serverId)
      // The first kill comes before the note is under its name: then the job begins anew.
      if (atChange > 1) assert.deepEqual(contents(join(files, 'into')), { ...NEW, 'there/own': 'own' }, `${atChange}`)
      assert.deepEqual(readdirSync(staging), [])
      for (let again = 0; again < 2; again++) assert.equal((await unpack(server, work, context)).path, '/into')
      assert.deepEqual(contents(join(files, 'into')), { ...NEW, 'there/own': 'own' })
      for (const path of Object.keys(NEW)) assert.equal(statSync(join(files, 'into', path)).nlink, 1, path)
      assert.deepEqual(readdirSync(staging), [])
      const { items } = await agent.listTrash({ serverId, limit: 10 })
      const replaced = new Set(items.map(({ path }) => path))
      assert.deepEqual([...replaced].sort(), overwrite ? ['/into/b', '/into/there/d'] : [])
      assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
      assert.ok(readdirSync(trash).length <= 2)
      await agent.stop()
      if (isDone) {
        assert.ok(atChange > 6, `${atChange}`)
        return
      }
    }
  })
}

test('what is in the way when an unpack goes on fails its job, which says what stays', async (t) => {
  const dataDir = makeTree(t, { [`servers/${serverId}/files/`]: '' })
  const places = layout(dataDir)
  const { files, staging } = places.server(serverId)
  mkdirSync(join(files, 'into'))
  const names = ['a', 'b', 'c', 'd']
  await writeArchiveTo(
    join(files, 'a.tar'),
    'tar',
    names.map((path) => entry(path)),
  )
  const work: UnpackWork = { kind: 'files.unpack', path: '/a.tar', directory: '/into' }
  // After the tree has its name, two files were moved, each by a link and an unlink.
  await killUnpacking(dataDir, work, 6)
  const moved = readdirSync(join(files, 'into'))
  const inWay = names.find((name) => !moved.includes(name)) ?? ''
  writeFileSync(join(files, 'into', inWay), 'of the game')

  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  await agent.start()
  t.after(() => agent.stop())
  await assert.rejects(unpack(agent.server(serverId), work, context), {
    code: 'already_exists',
    detail: `"/into/${inWay}" already exists. 2 of 4 files and directories had been moved into place, and stay there.`,
  })
  assert.equal(readFileSync(join(files, 'into', inWay), 'utf8'), 'of the game')
  assert.deepEqual(readdirSync(staging), [])
  assert.deepEqual(readdirSync(join(files, 'into')).sort(), [...moved, inWay].sort())
})

function contents(folder: string): Record<string, string> {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
  const paths = found.map(({ parentPath, name }) => join(parentPath, name))
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]))
}
