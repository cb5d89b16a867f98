import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isFailure } from '../../contract/errors.ts'
import { layout } from '../layout.ts'
import { writeContent } from './content.ts'
import { createAgentFiles } from './index.ts'
import { bytes, code, request, serverId, startServer, treeOf } from './server.testing.ts'
import { fillTree, makeTree, mount, withoutRoot } from './trees.testing.ts'

test('writers that run together cannot pass the quota together, and trash makes way for them', async (t) => {
  const { agent, server, folders } = await startServer(t, { old: Buffer.alloc(40_960) })
  await agent.setQuota({ serverId, quotaBytes: 102_400 })
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
  assert.equal((await agent.usage({ serverId })).trashBytes, 40_960)
  await writeContent(server, '/g', body())
  const after = await agent.usage({ serverId })
  assert.deepEqual([after.usedBytes, after.trashBytes, after.reservedBytes], [65_536, 0, 0])
  await server.usage.rescan()
  assert.equal((await agent.usage({ serverId })).usedBytes, 65_536)
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
