// Records that a full disk takes only in part, and records that cannot be read: nothing that they tell of is lost.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { newId } from '../../../kit/ids.ts'
import { layout } from '../../layout.ts'
import { createAgentFiles } from '../index.ts'
import { code, request, serverId, startServer } from '../server.testing.ts'
import { fillTree, makeTree, mount, withoutRoot } from '../trees.testing.ts'
import { planFreeing } from './trash-freeing.ts'

const BLOCK = 4096
const DAY_MS = 24 * 3600_000

/** A server on a disk of its own; `fill` leaves this much of it free, as a game does that has filled it. */
async function onFullDisk(t: TestContext, files: Record<string, string>) {
  const places = layout(makeTree(t, { [`servers/${serverId}/`]: '' }))
  const { root, files: top, trash } = places.server(serverId)
  await using disk = new AsyncDisposableStack()
  disk.use(mount(root, '-t', 'tmpfs', '-o', 'size=16m', 'tmpfs'))
  fillTree(top, files)
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  disk.defer(() => agent.stop())
  await agent.start()
  await agent.sweep()
  const log = join(top, 'game.log')
  const release = disk.move()
  return {
    agent,
    top,
    trash,
    fill(leftBytes: number) {
      const { bavail, bsize } = statfsSync(root)
      writeFileSync(log, Buffer.alloc(bavail * bsize - leftBytes))
    },
    free: () => rmSync(log),
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  }
}

test('a disk that takes a part of the record refuses the delete, before anything is moved', {
  skip: withoutRoot(),
}, async (t) => {
  const directory = Array.from({ length: 8 }, (_, index) => String(index).padStart(200, 'd')).join('/')
  const names = Array.from({ length: 50 }, (_, index) => `f${index}`)
  const paths = names.map((name) => `${directory}/${name}`)
  await using disk = await onFullDisk(t, Object.fromEntries(paths.map((path) => [path, 'precious'])))
  const { agent, top, trash, fill, free } = disk
  fill(4 * BLOCK)
  const removal = { root: `/${directory}`, files: names }
  await assert.rejects(agent.remove(request(removal)), code('disk_full'))
  assert.deepEqual(readdirSync(join(top, directory)).length, names.length)
  assert.deepEqual(readdirSync(trash), [], 'and leaves no half of a record')
  free()
  assert.equal((await agent.remove(request(removal))).deleted.length, names.length)
  assert.equal((await agent.listTrash({ serverId, limit: 100 })).items.length, names.length)
})

async function withCutRecord(t: TestContext) {
  let now = Date.now()
  const said: string[] = []
  const started = await startServer(
    t,
    { 'a "quoted", \\ name': 'A', b: 'B', 'c/d': 'D' },
    { now: () => now, onUnexpected: (error) => said.push(String(error)) },
  )
  const { agent, folders } = started
  await agent.remove(request({ root: '/', files: ['a "quoted", \\ name', 'b', 'c'] }))
  const [batch = ''] = readdirSync(folders.trash)
  const record = join(folders.trash, batch, 'record.json')
  const list = async () => (await agent.listTrash({ serverId })).items
  return { ...started, batch, record, said, list, pass: (ms: number) => (now += ms) }
}

test('items whose record cannot be read are neither expired nor freed, and are said in the log once', async (t) => {
  const { agent, server, folders, batch, record, said, pass } = await withCutRecord(t)
  truncateSync(record, 10)
  pass(100 * DAY_MS)
  await agent.sweep()
  await agent.sweep()
  assert.equal(await planFreeing([server.trash], { bytes: 1, entries: 1 }), undefined)
  assert.deepEqual(readdirSync(join(folders.trash, batch)).sort(), ['0000', '0001', '0002', 'record.json'])
  assert.equal(said.length, 1)
  assert.match(said[0] ?? '', new RegExp(`${batch} cannot be read`))
})

test('what a record says before it is cut counts; what it no longer says comes back under a name for it', async (t) => {
  const { agent, folders, record, list, tree, at } = await withCutRecord(t)
  truncateSync(record, readFileSync(record, 'utf8').indexOf('"/b"') + 2)
  assert.deepEqual(
    (await list()).map(({ path, kind, reason }) => [path, kind, reason]),
    [
      ['/a "quoted", \\ name', 'file', 'deleted'],
      ['/recovered-0001', 'file', 'deleted'],
      ['/recovered-0002', 'directory', 'deleted'],
    ],
  )
  for (const { id } of await list()) await agent.restoreTrash(request({ trashId: id }))
  assert.deepEqual(tree(), ['a "quoted", \\ name', 'recovered-0001', 'recovered-0002', 'recovered-0002/d'])
  assert.equal(readFileSync(at('recovered-0002/d'), 'utf8'), 'D')
  assert.deepEqual(readdirSync(folders.trash), [])
})

for (const [what, damage] of [
  ['is gone', (record: string) => rmSync(record)],
  ['is empty', (record: string) => truncateSync(record, 0)],
  ['says nothing', (record: string) => writeFileSync(record, 'null')],
  ['is zeros', (record: string) => writeFileSync(record, Buffer.alloc(BLOCK))],
] as const)
  test(`a record that ${what}: its items are listed, and emptying the trash removes them`, async (t) => {
    const { agent, folders, record, list } = await withCutRecord(t)
    damage(record)
    assert.deepEqual(
      (await list()).map(({ path }) => path),
      ['/recovered-0000', '/recovered-0001', '/recovered-0002'],
    )
    await agent.emptyTrash({ serverId })
    assert.deepEqual(readdirSync(folders.trash), [])
  })

test('what was on its way out, and cannot be told of since its record cannot be read, stays', async (t) => {
  const { server, folders, said } = await withCutRecord(t)
  const name = `freeing-${newId('trs')}`
  mkdirSync(join(folders.trash, name))
  fillTree(join(folders.trash, name), { 'record.json': '{"version":1,"it', '0000': 'precious' })
  await server.trash.recover()
  assert.equal(readFileSync(join(folders.trash, name, '0000'), 'utf8'), 'precious')
  assert.equal(said.length, 1)
})
