// What is refused has changed nothing: neither files nor the directories on the way to them.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { BY_THE_SYSTEM } from './changes/changes.ts'
import { bytes, code, request, serverId, startServer } from './server.testing.ts'
import type { ServerFiles } from './server-files.ts'
import { writeBatch } from './uploads/batch.ts'

const names = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`).join('/')

test('moves that are taken back take the directories with them that were made for them', async (t) => {
  const { agent, at, tree } = await startServer(t, { 'dir/': '', 'x.txt': 'x' })
  mkdirSync(at(names(101, 'deep')), { recursive: true })
  const before = tree()
  const moves = [
    { from: '/x.txt', to: '/m/n/x.txt' },
    { from: '/deep0', to: '/dir/deep' },
    { from: '/dir', to: `/${names(40, 'p')}/dir` },
  ]
  await assert.rejects(agent.move(request({ moves })), code('invalid_path'))
  assert.deepEqual(tree(), before)
})

test('a directory that somebody else has put something into stays when the moves are taken back', async (t) => {
  const { agent, at, server, tree } = await startServer(t, { 'dir/': '' })
  mkdirSync(at(names(101, 'deep')), { recursive: true })
  const { openNewPlace } = server.files
  Object.assign(server.files, {
    openNewPlace(...asked: Parameters<typeof openNewPlace>) {
      const place = openNewPlace(...asked)
      if (place.name === 'dir') mkdirSync(at('p0/p1/other'))
      return place
    },
  })
  const moves = [
    { from: '/deep0', to: '/dir/deep' },
    { from: '/dir', to: `/${names(40, 'p')}/dir` },
  ]
  await assert.rejects(agent.move(request({ moves })), code('invalid_path'))
  assert.deepEqual(
    tree().filter((path) => path.startsWith('p')),
    ['p0', 'p0/p1', 'p0/p1/other'],
  )
})

test('moves have room for all the directories that are missing, or none is made', async (t) => {
  const { agent, tree } = await startServer(t, { x: 'x', 'd/': '' })
  await agent.setQuota({ serverId, quotaBytes: null, maxEntries: 10 })
  const before = tree()
  const moves = [
    { from: '/x', to: '/n1/n2/n3/x' },
    { from: '/d', to: `/${names(20, 'm')}/d` },
  ]
  await assert.rejects(agent.move(request({ moves })), code('quota_exceeded'))
  assert.deepEqual(tree(), before)
  // What two of them need is needed once, and what is made counts once.
  const shared = ['x', 'd'].map((name) => ({ from: `/${name}`, to: `/${names(8, 'm')}/${name}` }))
  await agent.move(request({ moves: shared }))
  assert.equal((await agent.usage({ serverId })).usedEntries, 10)
})

async function upload(server: ServerFiles, ...paths: string[]) {
  async function* files() {
    for (const name of paths) yield { name, bytes: bytes(name) }
  }
  const form = { directory: '/', overwrite: true, maxBytes: 1e6, expectedBytes: 0 }
  const change = { kind: 'file.uploaded', requestId: null, origin: BY_THE_SYSTEM }
  return await writeBatch(server, files(), { ...form, signal: new AbortController().signal, change })
}

test('a form has room for all the directories that are missing, or none of its files is placed', async (t) => {
  const { agent, server, tree } = await startServer(t)
  await agent.setQuota({ serverId, quotaBytes: null, maxEntries: 10 })
  await assert.rejects(upload(server, 'a', `${names(20, 'p')}/b`), code('quota_exceeded'))
  assert.deepEqual(tree(), [])
  await upload(server, `${names(8, 'p')}/a`, `${names(8, 'p')}/b`)
  assert.equal((await agent.usage({ serverId })).usedEntries, 10)
})

test('a form has room for the records of all that it replaces, or none of its files is placed', async (t) => {
  const { agent, server, tree, at } = await startServer(t, { b: 'old', c: 'old' })
  await agent.setQuota({ serverId, quotaBytes: null, maxEntries: 5 })
  await assert.rejects(upload(server, 'a', 'b', 'c'), code('quota_exceeded'))
  assert.deepEqual(tree(), ['b', 'c'])
  assert.equal(readFileSync(at('b'), 'utf8'), 'old')
  await agent.setQuota({ serverId, quotaBytes: null, maxEntries: 9 })
  await upload(server, 'a', 'b', 'c')
  assert.equal((await agent.usage({ serverId })).usedEntries, 9)
})
