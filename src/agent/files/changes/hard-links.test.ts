// A file with several names: that one of them is there does not show that another came.
import assert from 'node:assert/strict'
import fs, { readFileSync, statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { test } from 'node:test'
import { code, request, serverId, startServer } from '../server.testing.ts'

/** Every link is refused meanwhile. */
async function withoutLinks(work: () => Promise<unknown>): Promise<void> {
  const { linkSync } = fs
  fs.linkSync = () => {
    throw Object.assign(new Error('EIO: injected'), { code: 'EIO' })
  }
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    fs.linkSync = linkSync
    syncBuiltinESMExports()
  }
}

test('a name of a file that cannot be brought back stays in the trash, though another is where it was', async (t) => {
  const { agent, server, at, tree } = await startServer(t, { 'd/b': 'both' })
  fs.linkSync(at('d/b'), at('d/a'))
  await agent.remove(request({ root: '/d', files: ['a'] }))
  const [item] = (await agent.listTrash({ serverId })).items
  const undo = request({ trashId: item?.id ?? '' })
  await withoutLinks(() => assert.rejects(agent.restoreTrash(undo)))
  assert.deepEqual(
    (await agent.listTrash({ serverId })).items.map(({ path }) => path),
    ['/d/a'],
  )
  assert.equal(await server.journal.find({ serverId, requestId: undo.requestId }), null)
  await agent.restoreTrash(undo)
  assert.deepEqual(tree(), ['d', 'd/a', 'd/b'])
  assert.deepEqual((await agent.listTrash({ serverId })).items, [])
})

test('moves that fail give a file both its names back', async (t) => {
  const { agent, server, at, tree } = await startServer(t, { h1: 'hard', s1: '1', s2: '2' })
  fs.linkSync(at('h1'), at('h2'))
  const moves = [
    { from: '/h1', to: '/h2' },
    { from: '/s1', to: '/s2' },
    { from: '/s2', to: '/s1' },
  ]
  const asked = request({ moves, overwrite: true })
  await assert.rejects(agent.move(asked), code('not_found'))
  assert.deepEqual(tree(), ['h1', 'h2', 's1', 's2'])
  assert.equal(statSync(at('h1')).ino, statSync(at('h2')).ino)
  assert.deepEqual([readFileSync(at('s1'), 'utf8'), readFileSync(at('s2'), 'utf8')], ['1', '2'])
  assert.equal(await server.journal.find({ serverId, requestId: asked.requestId }), null)
})

test('moving a file onto another name of it removes the old name', async (t) => {
  const { agent, at, tree } = await startServer(t, { h1: 'hard' })
  fs.linkSync(at('h1'), at('h2'))
  const moves = [{ from: '/h1', to: '/h2' }]
  await assert.rejects(agent.move(request({ moves })), code('already_exists'))
  const { data } = await agent.move(request({ moves, overwrite: true }))
  assert.deepEqual(
    data.map(({ path }) => path),
    ['/h2'],
  )
  assert.deepEqual(tree(), ['h2'])
  assert.equal(readFileSync(at('h2'), 'utf8'), 'hard')
  assert.deepEqual((await agent.listTrash({ serverId })).items, [])
})
