// Undo while room is short, and while others free or empty the trash: what is being taken back is nobody else's.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { until } from '../../http/agent.testing.ts'
import { writeContent } from '../content.ts'
import { bytes, code, request, serverId, startServer } from '../server.testing.ts'
import { planAndHold } from './trash-freeing.ts'

const BLOCK = 4096

async function trashed(t: TestContext, files: Record<string, string | Buffer>, ...deleted: string[][]) {
  const freed: string[] = []
  const recording = { isHeldUp: false, goOn: Promise.withResolvers<void>(), hasBegun: Promise.withResolvers<void>() }
  let now = Date.now()
  const started = await startServer(t, files, {
    now: () => now,
    async recordFreed(_server, { paths }) {
      recording.hasBegun.resolve()
      if (recording.isHeldUp) await recording.goOn.promise
      freed.push(...paths)
    },
  })
  const { agent } = started
  for (const paths of deleted) {
    await agent.remove(request({ root: '/', files: paths }))
    now += 1000
  }
  const paths = async () => (await agent.listTrash({ serverId })).items.map(({ path }) => path)
  return {
    ...started,
    freed,
    recording,
    paths,
    pass: (ms: number) => {
      now += ms
    },
    idOf: async (path: string) =>
      (await agent.listTrash({ serverId })).items.find((item) => item.path === path)?.id ?? '',
    undo: async (trashId: string) => (await agent.restoreTrash(request({ trashId }))).path,
    async setSpare(spareBytes: number) {
      const { usedBytes } = await agent.usage({ serverId })
      await agent.setQuota({ serverId, quotaBytes: usedBytes + spareBytes, maxEntries: null })
    },
  }
}

test('undo never makes room by freeing what it takes back: without room elsewhere it is refused and changes nothing', async (t) => {
  const files = { 'd/world.dat': Buffer.alloc(50 * BLOCK, 'w'), keep: 'k' }
  const { idOf, paths, setSpare, undo, freed, at, tree } = await trashed(t, files, ['d/world.dat'], ['d'])
  const id = await idOf('/d/world.dat')
  // With the empty directory gone there is room for it, and for nothing else.
  await setSpare(-3 * BLOCK)
  await assert.rejects(undo(id), code('quota_exceeded'))
  assert.deepEqual([await paths(), tree(), freed], [['/d', '/d/world.dat'], ['keep'], []])
  await setSpare(-2 * BLOCK)
  assert.equal(await undo(id), '/d/world.dat')
  assert.deepEqual(readFileSync(at('d/world.dat')), files['d/world.dat'])
  assert.deepEqual(freed, ['/d'])
})

test('of one deletion, what is not being taken back makes room, and counts without the record that stays', async (t) => {
  const files = { 'd/a': Buffer.alloc(BLOCK, 'a'), b: Buffer.alloc(BLOCK, 'b') }
  const { idOf, setSpare, undo, freed, tree } = await trashed(t, files, ['d/a', 'b'], ['d'])
  const id = await idOf('/d/a')
  // The block of b and the three of the empty directory are all there is to free.
  await setSpare(-4 * BLOCK)
  await assert.rejects(undo(id), code('quota_exceeded'))
  assert.deepEqual(freed, [])
  await setSpare(-3 * BLOCK)
  assert.equal(await undo(id), '/d/a')
  assert.deepEqual(
    [tree(), freed.toSorted()],
    [
      ['d', 'd/a'],
      ['/b', '/d'],
    ],
  )
})

test('while an undo waits for room, others who need room do not get what it takes back', async (t) => {
  const files = { 'd/world.dat': Buffer.alloc(50 * BLOCK, 'w'), other: Buffer.alloc(BLOCK) }
  const { agent, server, recording, idOf, setSpare, undo, at } = await trashed(
    t,
    files,
    ['d/world.dat'],
    ['d'],
    ['other'],
  )
  const id = await idOf('/d/world.dat')
  await setSpare(0)
  recording.isHeldUp = true
  const undoing = undo(id)
  await recording.hasBegun.promise
  const writing = writeContent(server, '/new', bytes('x'.repeat(20 * BLOCK)))
  const refused = assert.rejects(writing, code('quota_exceeded'))
  recording.goOn.resolve()
  assert.equal(await undoing, '/d/world.dat')
  await refused
  assert.deepEqual(readFileSync(at('d/world.dat')), files['d/world.dat'])
  assert.equal((await agent.usage({ serverId })).reservedBytes, 0)
})

test('what is already on its way out of the trash cannot be taken back', async (t) => {
  const { server, idOf, undo, freed, tree, paths } = await trashed(t, { old: Buffer.alloc(BLOCK) }, ['old'])
  const id = await idOf('/old')
  const plan = await planAndHold([server.trash], { bytes: BLOCK, entries: 0 })
  await assert.rejects(undo(id), code('not_found'))
  for (const [trash, items] of plan ?? [])
    await (await trash.setAside(items, { reason: 'quota', requestedBy: serverId }))()
  await assert.rejects(undo(id), code('not_found'))
  assert.deepEqual([tree(), await paths(), freed], [[], [], ['/old']])
})

test('two undos of one item at once: one brings it back, the other is told that it is gone', async (t) => {
  const { idOf, undo, setSpare, tree } = await trashed(t, { old: 'old' }, ['old'])
  await setSpare(-BLOCK)
  const id = await idOf('/old')
  const results = await Promise.allSettled([undo(id), undo(id)])
  assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  assert.deepEqual(tree(), ['old'])
})

test('a directory and what was deleted from it before, undone at once, are both back', async (t) => {
  const files = { 'd/a': 'a', 'd/b': 'b' }
  const { idOf, undo, tree, at } = await trashed(t, files, ['d/a'], ['d'])
  const [a, d] = [await idOf('/d/a'), await idOf('/d')]
  const [path, directory] = await Promise.all([undo(a), undo(d)])
  assert.equal(readFileSync(at(path.slice(1)), 'utf8'), 'a')
  assert.equal(readFileSync(at(`${directory.slice(1)}/b`), 'utf8'), 'b')
  assert.equal(tree().filter((name) => /\/[ab]/.test(name)).length, 2)
})

for (const how of ['emptied', 'expired'] as const)
  test(`while an undo waits for room the trash is ${how}: the directory comes back whole`, async (t) => {
    const names = Array.from({ length: 50 }, (_, index) => `p/d/f${index}`)
    const files = { ...Object.fromEntries(names.map((name) => [name, name])), other: Buffer.alloc(BLOCK) }
    const { agent, server, recording, idOf, setSpare, undo, tree, pass, paths } = await trashed(
      t,
      files,
      ['p/d'],
      ['p'],
      ['other'],
    )
    const id = await idOf('/p/d')
    await setSpare(0)
    recording.isHeldUp = true
    const undoing = undo(id)
    await recording.hasBegun.promise
    if (how === 'expired') pass(25 * 3600_000)
    const emptying = how === 'emptied' ? agent.emptyTrash({ serverId }) : server.trash.expire()
    // What is not being taken back goes meanwhile.
    await until(async () => !(await paths()).includes('/other'))
    recording.goOn.resolve()
    assert.equal(await undoing, '/p/d')
    await emptying
    assert.deepEqual(tree(), ['p', 'p/d', ...names].toSorted())
    assert.deepEqual(await paths(), [])
  })
