import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isFailure } from '../../../contract/errors.ts'
import { newId } from '../../../kit/ids.ts'
import { until } from '../../http/agent.testing.ts'
import { layout } from '../../layout.ts'
import { type PackWork, pack } from '../archives/pack.ts'
import { unpack } from '../archives/unpack.ts'
import { BY_THE_SYSTEM } from '../changes/changes.ts'
import { writeContent } from '../content.ts'
import { createAgentFiles, type FilesOfAgent } from '../index.ts'
import { bytes, code, request, serverId, startServer, treeOf } from '../server.testing.ts'
import { planAndHold } from '../trash/trash-freeing.ts'
import { fillTree, makeTree, mount, withoutRoot } from '../trees.testing.ts'
import { writeBatch } from '../uploads/batch.ts'
import type { PartialRecord } from '../uploads/partial-records.ts'
import { createPartialUploads } from '../uploads/partial-uploads.ts'

const names = (count: number) => Array.from({ length: count }, (_, index) => `f${index}`)

test('Nothing that goes through Gamekeeper makes usedBytes exceed the quota', async (t) => {
  const { agent, server, folders } = await startServer(t, { old: Buffer.alloc(40_960) })
  await agent.setQuota({ serverId, quotaBytes: 102_400, maxEntries: null })
  const body = async function* () {
    for (let i = 0; i < 4; i++) yield Buffer.alloc(4096)
  }
  const before = await agent.usage({ serverId })
  assert.deepEqual([before.usedBytes, before.quotaBytes], [40_960, 102_400])
  const results = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => writeContent(server, `/f${i}`, body())))
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 3)
  for (const result of results) if (result.status === 'rejected') assert.ok(isFailure(result.reason, 'quota_exceeded'))
  assert.deepEqual(readdirSync(folders.staging), [])
  await agent.remove(request({ root: '/', files: ['old'] }))
  assert.equal((await agent.usage({ serverId })).trashBytes, 49_152, 'with its record')
  await writeContent(server, '/g', body())
  const after = await agent.usage({ serverId })
  assert.deepEqual([after.usedBytes, after.trashBytes, after.reservedBytes], [65_536, 0, 0])
  await server.usage.rescan()
  assert.equal((await agent.usage({ serverId })).usedBytes, 65_536)
})

test('what a scan comes upon before it is committed does not count twice', async (t) => {
  const { agent, server, at } = await startServer(t, { old: Buffer.alloc(4096) })
  const reservation = await server.usage.reserve(8192, 1)
  writeFileSync(at('new'), Buffer.alloc(8192))
  await server.usage.rescan()
  await reservation.clear(8192, 1)
  reservation.commit()
  assert.equal((await agent.usage({ serverId })).usedBytes, 12_288)
})

test('what is committed while a scan runs counts when it ends, wherever the scan was', async (t) => {
  const { agent, server, at } = await startServer(t, Object.fromEntries(names(2000).map((name) => [name, 'x'])))
  await agent.setQuota({ serverId, quotaBytes: null, maxEntries: 3000 })
  let isScanning = true
  const scan = server.usage.rescan().finally(() => {
    isScanning = false
  })
  let made = 0
  while (isScanning && made < 999) {
    const reservation = await server.usage.reserve(1, 1)
    await reservation.clear(1, 1)
    writeFileSync(at(`new ${made++}`), 'x')
    reservation.commit()
    await new Promise(setImmediate)
  }
  await scan
  assert.ok(made > 3, `${made}`)
  assert.ok(!server.usage.fitsEntries(1000 - made + 1), 'some are not counted')
  await server.usage.rescan()
  assert.ok(server.usage.fitsEntries(1000 - made), 'some are counted twice')
})

// In one of the two directions what is moved leaves a directory that is still to be measured for one that was.
for (const [from, to] of [
  ['a', 'z'],
  ['z', 'a'],
] as const) {
  test(`what is moved from ${from} to ${to} while a scan runs counts when it ends`, async (t) => {
    const tree = names(1500).flatMap((name) => [`a/a${name}`, `z/z${name}`])
    const { agent, server, at } = await startServer(t, Object.fromEntries(tree.map((path) => [path, 'x'])))
    await server.usage.rescan()
    await agent.setQuota({ serverId, quotaBytes: null, maxEntries: tree.length + 2 })
    let isScanning = true
    const scan = server.usage.rescan().finally(() => {
      isScanning = false
    })
    for (const name of names(1500)) {
      if (!isScanning) break
      renameSync(at(`${from}/${from}${name}`), at(`${to}/${from}${name}`))
      server.usage.touch()
      await new Promise(setImmediate)
    }
    await scan
    assert.ok(!server.usage.fitsEntries(1), 'some are not counted')
  })
}

test('an upload that was placed before a crash does not count twice after it', async (t) => {
  const { agent, server, folders } = await startServer(t, { upload: Buffer.alloc(4096) })
  const record = partialRecord(4096)
  fillTree(folders.staging, { [`part-${record.id}.json`]: JSON.stringify(record) })
  await server.usage.rescan()
  await createPartialUploads(server, async () => {}).recover()
  const { usedBytes, reservedBytes } = await agent.usage({ serverId })
  assert.deepEqual([usedBytes, reservedBytes], [4096, 0])
})

test('a full disk is disk_full, with the old file intact and nothing left over', { skip: withoutRoot() }, async (t) => {
  const base = makeTree(t, { 'data/': '' })
  using _tmpfs = mount(join(base, 'data'), '-t', 'tmpfs', '-o', 'size=20m', 'tmpfs')
  const places = layout(join(base, 'data'))
  fillTree(places.server(serverId).files, { 'a.bin': Buffer.alloc(6 * 1024 * 1024, 1), 'd/b.bin': Buffer.alloc(4096) })
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  await agent.start()
  const endless = async function* () {
    for (;;) yield Buffer.alloc(65_536, 2)
  }
  const server = agent.server(serverId)
  await assert.rejects(writeContent(server, '/a.bin', endless()), code('disk_full'))
  await assert.rejects(writeContent(server, '/new', endless(), { expectedBytes: 1e9 }), code('disk_full'))
  await assert.rejects(agent.copy(request({ location: '/a.bin' })), code('disk_full'))
  assert.deepEqual(readFileSync(join(server.folders.files, 'a.bin')), Buffer.alloc(6 * 1024 * 1024, 1))
  assert.deepEqual(readdirSync(server.folders.staging), [])
  assert.deepEqual(treeOf(server.folders.files), ['a.bin', 'd', 'd/b.bin'])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
  await agent.stop()
})

test('a full disk stops uploads, packing and unpacking, and nothing is left', { skip: withoutRoot() }, async (t) => {
  const base = makeTree(t, { 'data/': '' })
  using _tmpfs = mount(join(base, 'data'), '-t', 'tmpfs', '-o', 'size=24m', 'tmpfs')
  const places = layout(join(base, 'data'))
  const { files, staging } = places.server(serverId)
  // Sparse: it takes no space as it is, and all of it once somebody writes it out.
  fillTree(files, { big: '', 'kept.txt': 'kept' })
  truncateSync(join(files, 'big'), 40 * 1024 * 1024)
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  await agent.start()
  const server = agent.server(serverId)
  const { signal } = new AbortController()
  const context = { taskId: 'job_1', serverId, signal, report: () => {} }
  const packing: PackWork = { kind: 'files.pack', root: '/', files: ['big'], format: 'tar' }
  await assert.rejects(pack(server, packing, context), code('disk_full'))
  await pack(server, { ...packing, format: 'tar.gz', target: '/small.tgz' }, context)
  const unpacking = { kind: 'files.unpack', path: '/small.tgz', directory: '/out' } as const
  await assert.rejects(unpack(server, unpacking, context), code('disk_full'))
  const endless = async function* () {
    yield { name: 'one', bytes: bytes('first') }
    yield {
      name: 'two',
      bytes: (async function* () {
        for (;;) yield Buffer.alloc(65_536, 2)
      })(),
    }
  }
  const change = { kind: 'file.uploaded', requestId: null, origin: BY_THE_SYSTEM }
  const form = { directory: '/', overwrite: true, maxBytes: 1e9, expectedBytes: 0, signal, change }
  await assert.rejects(writeBatch(server, endless(), form), code('disk_full'))
  const uploads = createPartialUploads(server, async () => {})
  await assert.rejects(uploads.create(partialRecord(30 * 1024 * 1024), 1e9), code('disk_full'))
  assert.deepEqual(treeOf(files), ['big', 'kept.txt', 'small.tgz'])
  assert.deepEqual(readdirSync(staging), [])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
  await agent.stop()
})

const partialRecord = (sizeBytes: number): PartialRecord => ({
  version: 1,
  id: newId('upl'),
  uploadId: newId('upl'),
  cause: { tokenId: 'tok_1', requestId: 'req_1', ip: '127.0.0.1', userAgent: '' },
  directory: '/',
  path: '/upload',
  overwrite: true,
  sizeBytes,
  metadata: {},
  isFinished: false,
})

test('when the disk is short the oldest trash makes way, whose ever it is, and only on that disk', {
  skip: withoutRoot(),
}, async (t) => {
  const base = makeTree(t, { 'data/': '' })
  using _tmpfs = mount(join(base, 'data'), '-t', 'tmpfs', '-o', 'size=40m', 'tmpfs')
  const places = layout(join(base, 'data'))
  const mib = (count: number) => Buffer.alloc(count * 1024 * 1024, 1)
  fillTree(places.server(serverId).files, { old: mib(8) })
  fillTree(places.server('srv_other').files, { old: mib(8), kept: mib(2) })
  mkdirSync(places.server('srv_elsewhere').root, { recursive: true })
  using _elsewhere = mount(places.server('srv_elsewhere').root, '-t', 'tmpfs', '-o', 'size=20m', 'tmpfs')
  fillTree(places.server('srv_elsewhere').files, { old: mib(8) })
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  await agent.start()
  for (const each of ['srv_elsewhere', serverId, 'srv_other'])
    await agent.remove({ serverId: each, requestId: `req_${each}`, root: '/', files: ['old'] })
  const trashed = async (each: string) => (await agent.listTrash({ serverId: each })).items.length
  // 40 MiB less 18 in use, 1 for the journal and 8 that are never given away: 13 are free.
  const write = (path: string, size: number) =>
    writeContent(agent.server(serverId), path, bytes(mib(size).toString('latin1')), {
      expectedBytes: size * 1024 * 1024,
    })
  await write('/a', 10)
  assert.deepEqual([await trashed(serverId), await trashed('srv_other')], [1, 1])
  await write('/b', 10)
  assert.deepEqual([await trashed(serverId), await trashed('srv_other')], [0, 1])
  await write('/c', 7)
  assert.deepEqual([await trashed(serverId), await trashed('srv_other')], [0, 0])
  await assert.rejects(write('/d', 8), code('disk_full'))
  assert.equal(await trashed('srv_elsewhere'), 1)
  assert.deepEqual(readFileSync(join(places.server('srv_other').files, 'kept')), mib(2))
  assert.equal((await agent.usage({ serverId: 'srv_other' })).usedBytes, 2 * 1024 * 1024)
  await agent.stop()
})

test('a sender that lies about its size is counted by what came', async (t) => {
  const { agent, server } = await startServer(t, { kept: Buffer.alloc(4096) })
  await agent.setQuota({ serverId, quotaBytes: 40_960, maxEntries: null })
  const body = (sizeBytes: number) => bytes('x'.repeat(sizeBytes))
  await writeContent(server, '/less', body(4096), { expectedBytes: 20_480 })
  await writeContent(server, '/more', body(20_480), { expectedBytes: 4096 })
  const { usedBytes, reservedBytes } = await agent.usage({ serverId })
  assert.deepEqual([usedBytes, reservedBytes], [28_672, 0])
  await assert.rejects(writeContent(server, '/far more', body(20_480), { expectedBytes: 4096 }), code('quota_exceeded'))
  const failing = async function* () {
    yield Buffer.alloc(4096)
    throw new Error('cut')
  }
  await assert.rejects(writeContent(server, '/cut', failing(), { expectedBytes: 8192 }), /cut/)
  assert.deepEqual(await agent.usage({ serverId }), {
    usedBytes: 28_672,
    trashBytes: 0,
    reservedBytes: 0,
    quotaBytes: 40_960,
    usedEntries: 3,
    trashEntries: 0,
    reservedEntries: 0,
    maxEntries: null,
  })
})

test('while the tree is being swapped everything else is told so', async (t) => {
  const { agent, server } = await startServer(t, { a: 'a' })
  const writing = server.lock.share()
  const swapping = server.lock.exclude()
  await assert.rejects(agent.copy(request({ location: '/a' })), code('server_busy'))
  await assert.rejects(server.lock.exclude(), code('server_busy'))
  writing[Symbol.dispose]()
  const swap = await swapping
  await assert.rejects(agent.remove(request({ root: '/', files: ['a'] })), code('server_busy'))
  await assert.rejects(writeContent(server, '/b', bytes('x')), code('server_busy'))
  swap[Symbol.dispose]()
  assert.equal((await agent.copy(request({ location: '/a' }))).name, 'a copy')
})

test('what a crash left in staging is gone after a start; what has an owner stays', async (t) => {
  const { agent, folders } = await startServer(t)
  fillTree(folders.staging, { 'tmp-upl_x/deep/y': '', 'tmp-z': '', upl_kept: '' })
  await agent.start()
  assert.deepEqual(readdirSync(folders.staging), ['upl_kept'])
})

test('while one server frees its trash, however long that takes, another clears its own room', {
  timeout: 120_000,
}, async (t) => {
  const slow = Promise.withResolvers<void>()
  const freed: string[] = []
  const { agent } = await twoServers(t, async (each) => {
    freed.push(each)
    if (each === serverId) await slow.promise
  })
  const first = write(agent, serverId, '/new', 8192)
  await until(() => freed.length === 1)
  await write(agent, 'srv_other', '/new', 8192)
  assert.deepEqual(freed, [serverId, 'srv_other'])
  // What the first sets aside is more than it needs: the second waits for it, and is not refused.
  const second = write(agent, serverId, '/second', 8192)
  slow.resolve()
  await Promise.all([first, second])
  assert.equal((await agent.listTrash({ serverId })).items.length, 0)
  const { usedBytes, reservedBytes } = await agent.usage({ serverId })
  assert.deepEqual([usedBytes, reservedBytes], [16_384, 0])
})

test('killed between setting aside and removing, the next start records it once, removes it, and the account is right', async (t) => {
  const freed: string[] = []
  const { agent, places } = await twoServers(t, async () => {})
  const { trash } = agent.server(serverId)
  const plan = await planAndHold([trash], { bytes: 4096, entries: 0 })
  for (const [each, items] of plan ?? []) await each.setAside(items, { reason: 'quota', requestedBy: serverId })
  assert.equal((await agent.listTrash({ serverId })).items.length, 0)
  const next = createAgentFiles({
    layout: places,
    onUnexpected: assert.ifError,
    recordFreed: async (_server, { paths }) => void freed.push(...paths),
  })
  t.after(() => next.stop())
  await next.start()
  await next.sweep()
  assert.deepEqual(freed, ['/old'])
  assert.deepEqual(readdirSync(places.server(serverId).trash), [])
  const { usedBytes, trashBytes } = await next.usage({ serverId })
  assert.deepEqual([usedBytes, trashBytes], [0, 0])
})

/** Each has a quota that its trash nearly fills. */
async function twoServers(t: TestContext, recordFreed: (serverId: string) => Promise<void>) {
  const places = layout(makeTree(t))
  for (const each of [serverId, 'srv_other']) fillTree(places.server(each).files, { old: Buffer.alloc(40_960) })
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError, recordFreed })
  t.after(() => agent.stop())
  await agent.start()
  for (const each of [serverId, 'srv_other']) {
    await agent.remove({ serverId: each, requestId: `req_${each}`, root: '/', files: ['old'] })
    await agent.setQuota({ serverId: each, quotaBytes: 53_248, maxEntries: null })
  }
  return { agent, places }
}

const write = (agent: FilesOfAgent, each: string, path: string, sizeBytes: number) =>
  writeContent(agent.server(each), path, bytes('x'.repeat(sizeBytes)), { expectedBytes: sizeBytes })
