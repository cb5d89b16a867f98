// What is removed from the mirror, and what never is.
import assert from 'node:assert/strict'
import { rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openLocalStore } from '../../blobs/local.ts'
import { assertSameTree, snapshot, startAgent, temporaryFolder, testAgent } from '../backups/backups.testing.ts'
import { assertRestorable, backups, idsOf, namesIn, remove, SERVER, testMirror } from './mirror.testing.ts'

const DAY_MS = 24 * 3600_000

test('removes what was deleted, and nothing that is gone for another reason', async (t) => {
  const mirror = await testMirror(t)
  const [first = '', second = '', third = ''] = (await backups(mirror, 3)).keys()
  await mirror.run()
  await remove(mirror, first)
  const asked = await mirror.run()
  assert.deepEqual(idsOf(asked.unexplained), [first])
  assert.equal(asked.surplus?.reason, 'store_incomplete')
  assert.equal(asked.removed.blobs, 0)
  const done = await mirror.run({ deletedBackups: [first] })
  assert.equal(done.surplus, null)
  assert.ok(done.removed.bytes > 100_000)
  assert.deepEqual(namesIn(mirror.dir, 'manifests'), [second, third].sort())
  assert.deepEqual(namesIn(mirror.dir, 'packs'), namesIn(mirror.agent.storeDir, 'packs'))
})

test('keeps what has left the disk, which is read from there', async (t) => {
  const dir = join(temporaryFolder(t), 'bucket')
  const agent = await testAgent(t, { blockHash: 'sha-256', offsite: () => openLocalStore(dir, { clear: false }) })
  const mirror = await testMirror(t, { dir, agent, keepLocal: { bytes: 0 } })
  const trees = await backups(mirror, 2)
  await mirror.run()
  const sent = namesIn(dir, 'packs')
  assert.equal(namesIn(agent.storeDir, 'packs').length, sent.length - 1)
  assert.equal((await mirror.run({ isThorough: true })).surplus, null)
  assert.deepEqual(namesIn(dir, 'packs'), sent)
  for (const [backupId, tree] of trees) {
    await agent.restore(SERVER, backupId)
    assertSameTree(snapshot(agent.filesOf(SERVER)), tree)
  }
})

test('keeps a pack that was gone when the store was opened', async (t) => {
  const mirror = await testMirror(t)
  await backups(mirror, 3)
  await mirror.run()
  const sent = namesIn(mirror.dir, 'packs')
  await mirror.agent.stop()
  const [gone = ''] = sent
  rmSync(join(mirror.agent.storeDir, 'packs', gone.slice(0, 2), gone))
  const agent = await startAgent(mirror.agent.dataDir, { offsite: () => Promise.reject(new Error('not reached')) })
  t.after(() => agent.stop())
  const report = await (await testMirror(t, { dir: mirror.dir, agent })).run({ isThorough: true })
  assert.equal(report.surplus?.reason, 'store_incomplete')
  assert.deepEqual(namesIn(mirror.dir, 'packs'), sent)
})

test('A local store that is emptied by an attacker never empties the mirror.', async (t) => {
  const mirror = await testMirror(t)
  const trees = await backups(mirror, 3)
  await mirror.run()
  for (const folder of ['packs', 'index', 'manifests']) rmSync(join(mirror.agent.storeDir, folder), { recursive: true })
  const ids = [...trees.keys()]
  // Also where the attacker can tell the database that they were deleted.
  for (const deletedBackups of [[], ids]) {
    const report = await mirror.run({ isThorough: true, deletedBackups })
    assert.equal(report.surplus?.reason, 'store_incomplete')
    assert.equal(report.removed.blobs, 0)
  }
  await assertRestorable(t, mirror.dir, SERVER, trees, ids)
})

test('A blob of the mirror is never replaced by one that is damaged here.', async (t) => {
  const mirror = await testMirror(t)
  const trees = await backups(mirror, 1)
  await mirror.run()
  for (const folder of ['packs', 'index', 'manifests']) {
    for (const name of namesIn(mirror.agent.storeDir, folder)) {
      const inner = folder === 'packs' ? name.slice(0, 2) : folder === 'manifests' ? SERVER : ''
      truncateSync(join(mirror.agent.storeDir, folder, inner, name), 50)
    }
  }
  await mirror.run({ isThorough: true })
  await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
})

test('Deletions of more than half of the mirror need a confirmation, also little by little', async (t) => {
  let now = Date.now()
  const mirror = await testMirror(t, { now: () => now })
  const ids = [...(await backups(mirror, 7)).keys()]
  await mirror.run()
  const deleteUpTo = async (count: number, confirmedBytes: number | null = null) => {
    await remove(mirror, ...ids.slice(0, count))
    return mirror.run({ deletedBackups: ids, confirmedBytes })
  }
  assert.equal((await deleteUpTo(3)).surplus, null)
  const held = await deleteUpTo(4)
  assert.equal(held.surplus?.reason, 'shrinks')
  assert.equal(held.surplus?.backups, 1)
  assert.equal(namesIn(mirror.dir, 'manifests').length, 4)
  const { bytes } = held.surplus ?? { bytes: 0 }
  assert.equal((await mirror.run({ deletedBackups: ids, confirmedBytes: bytes - 1 })).surplus?.reason, 'shrinks')
  assert.equal((await mirror.run({ deletedBackups: ids, confirmedBytes: bytes })).surplus, null)
  assert.deepEqual(namesIn(mirror.dir, 'manifests'), ids.slice(4).sort())
  // From here on it is compared with what was left.
  assert.equal((await deleteUpTo(5)).surplus, null)
  now += 8 * DAY_MS
  await mirror.run()
  assert.equal((await deleteUpTo(7)).surplus?.reason, 'shrinks')
})

test('lets the only backup be replaced by another', async (t) => {
  const mirror = await testMirror(t)
  const [first = ''] = (await backups(mirror, 1)).keys()
  await mirror.run()
  const [second = ''] = (await backups(mirror, 1)).keys()
  await remove(mirror, first)
  assert.equal((await mirror.run({ deletedBackups: [first] })).surplus, null)
  assert.deepEqual(namesIn(mirror.dir, 'manifests'), [second])
})

test('removes nothing where it may only append, and says how much could go', async (t) => {
  const mirror = await testMirror(t, { isAppendOnly: true })
  const [first = '', second = ''] = (await backups(mirror, 2)).keys()
  await mirror.run()
  await remove(mirror, first)
  mirror.faults.before = (call) => assert.notEqual(call, 'delete')
  const { surplus, unexplained } = await mirror.run({ deletedBackups: [first], confirmedBytes: 1e9 })
  assert.equal(surplus?.reason, 'append_only')
  assert.equal(surplus?.backups, 1)
  assert.ok((surplus?.bytes ?? 0) > 100_000)
  assert.deepEqual(unexplained, [])
  assert.deepEqual(namesIn(mirror.dir, 'manifests'), [first, second].sort())
})
