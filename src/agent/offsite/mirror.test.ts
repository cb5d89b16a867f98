// The mirror, with a directory in the place of a bucket: what it holds restores without the store that it was made from.
import assert from 'node:assert/strict'
import { readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openLocalStore } from '../../blobs/local.ts'
import { namesIn } from '../../blobs/store.testing.ts'
import { assertSameTree, snapshot, startAgent, temporaryFolder, testAgent } from '../backups/backups.testing.ts'
import { assertRestorable, backups, change, killEverywhere, remove, SERVER, testMirror } from './mirror.testing.ts'

const DAY_MS = 24 * 3600_000

const idsOf = (stored: { backupId: string }[]) => stored.map(({ backupId }) => backupId).sort()

describe('sending', () => {
  it('makes the mirror a store of its own, and tells which backups are in it', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 2)
    const ids = [...trees.keys()].sort()
    const first = await mirror.run({ isThorough: true })
    assert.deepEqual(idsOf(first.stored), ids)
    assert.equal(first.mirror.backups, 2)
    assert.equal(first.surplus, null)
    assert.deepEqual(mirror.progress.bytesDone, first.sent.bytes)
    assert.deepEqual(mirror.progress.bytesTotal, first.sent.bytes)
    await assertRestorable(t, mirror.dir, SERVER, trees, ids)
  })

  it('sends only what has come since, and asks for little', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 1)
    await mirror.run()
    const calls: string[] = []
    mirror.faults.before = (call, name) => void calls.push(`${call} ${name.split('/')[0]}`)
    assert.equal((await mirror.run()).sent.blobs, 0)
    assert.deepEqual(calls.splice(0), ['get owner'])
    for (const [id, tree] of await backups(mirror, 1)) trees.set(id, tree)
    const report = await mirror.run()
    assert.equal(report.sent.blobs, 3)
    assert.deepEqual(idsOf(report.stored), [...trees.keys()].slice(-1))
    assert.deepEqual(calls, [
      'get owner',
      ...['commit packs', 'stat packs', 'commit index', 'stat index', 'commit manifests', 'stat manifests'],
      // Four small blobs by now.
      'commit bundles',
    ])
    await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
  })

  it('keeps locks as they are', async (t) => {
    const mirror = await testMirror(t)
    const [id = ''] = (await backups(mirror, 1)).keys()
    await mirror.run()
    const mark = join(mirror.dir, 'locks', SERVER, id)
    for (const isLocked of [true, false, true]) {
      await mirror.agent.backups.setLock({ serverId: SERVER, backupId: id, isLocked })
      await mirror.run()
      assert.deepEqual(JSON.parse(readFileSync(mark, 'utf8')), { isLocked })
    }
  })

  it('the bucket holds a complete store at every instant', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 2)
    const check = () => assertRestorable(t, mirror.dir, SERVER, trees)
    // Who it belongs to, its format, two packs, two indexes, two manifests.
    assert.equal(await killEverywhere(t, mirror, [], check), 8)
    const [first = '', second = ''] = trees.keys()
    await remove(mirror, first)
    const [third = '', tree = {}] = [...(await backups(mirror, 1))][0] ?? []
    trees.set(third, tree)
    assert.ok((await killEverywhere(t, mirror, [first], check)) >= 6)
    await assertRestorable(t, mirror.dir, SERVER, trees, [second, third])
    assert.deepEqual(namesIn(mirror.dir, 'packs'), namesIn(mirror.agent.storeDir, 'packs'))
    assert.deepEqual(namesIn(mirror.dir, 'index'), namesIn(mirror.agent.storeDir, 'index'))
  })

  it('begins again where a reclaim has taken packs away meanwhile', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 3)
    const [doomed = '', ...kept] = trees.keys()
    let isReclaimed = false
    mirror.faults.before = async (call, name) => {
      if (isReclaimed || call !== 'commit' || !name.startsWith('packs/')) return
      isReclaimed = true
      await remove(mirror, doomed)
    }
    const report = await mirror.run({ isThorough: true, deletedBackups: [doomed] })
    assert.ok(isReclaimed)
    assert.deepEqual(idsOf(report.stored), kept.sort())
    await assertRestorable(t, mirror.dir, SERVER, trees, kept)
    assert.deepEqual(namesIn(mirror.dir, 'packs'), namesIn(mirror.agent.storeDir, 'packs'))
  })

  it('tells of no backup that was deleted before it could be sent', async (t) => {
    const mirror = await testMirror(t)
    const [gone = '', kept = ''] = (await backups(mirror, 2)).keys()
    mirror.faults.before = async (call, name) => {
      if (call === 'commit' && name.startsWith('index/'))
        await mirror.agent.backups.remove({ serverId: SERVER, backupId: gone })
    }
    assert.deepEqual(idsOf((await mirror.run({ isThorough: true })).stored), [kept])
    assert.deepEqual(namesIn(mirror.dir, 'manifests'), [kept])
  })

  it('stays below its rate', async (t) => {
    const mirror = await testMirror(t, { bytesPerSecond: 1_000_000 })
    change(mirror, 1_300_000)
    await mirror.backup(SERVER)
    const began = performance.now()
    await mirror.run()
    // A second's worth may go at once.
    assert.ok(performance.now() - began > 250)
  })
})

describe('a place that fails', () => {
  it('A backup is stored only once the bucket lists everything that it needs, in its full size, whatever it has acknowledged before.', async (t) => {
    for (const folder of ['packs/', 'index/', 'manifests/']) {
      const mirror = await testMirror(t)
      const trees = await backups(mirror, 1)
      mirror.faults.keepsPart = (name) => name.startsWith(folder)
      await assert.rejects(mirror.run(), { code: 'offsite_unreachable' })
      if (folder !== 'manifests/') assert.deepEqual(namesIn(mirror.dir, 'manifests'), [])
      delete mirror.faults.keepsPart
      assert.deepEqual(idsOf((await mirror.run({ isThorough: true })).stored), [...trees.keys()])
      await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
    }
  })

  it('is told in its own words, and its fault ends the run', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 1)
    for (const failing of ['get', 'list', 'commit', 'stat'] as const) {
      mirror.faults.before = (call) => {
        if (call === failing) throw new Error('the bucket is on fire')
      }
      await assert.rejects(mirror.run(), { code: 'offsite_unreachable', detail: 'the bucket is on fire' })
    }
    mirror.faults.before = () => {}
    await mirror.run()
    await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
  })

  it('is not waited for when it stalls, nor when the run is cancelled', async (t) => {
    const mirror = await testMirror(t, { stalledMs: 100 })
    await backups(mirror, 1)
    const never = new Promise<void>(() => {})
    mirror.faults.before = (call) => (call === 'commit' ? never : undefined)
    await assert.rejects(mirror.run(), { code: 'offsite_unreachable' })
    const patient = await testMirror(t)
    await backups(patient, 1)
    const stalled = Promise.withResolvers<void>()
    patient.faults.before = (call) => {
      if (call !== 'commit') return undefined
      stalled.resolve()
      return never
    }
    const abort = new AbortController()
    const running = patient.run({}, abort.signal)
    await stalled.promise
    abort.abort(new Error('enough'))
    await assert.rejects(running, { message: 'enough' })
    delete patient.faults.before
    assert.equal((await patient.run()).stored.length, 1)
  })

  it('runs one after the other', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 1)
    const [first, second] = await Promise.all([mirror.run(), mirror.run()])
    assert.deepEqual(idsOf(first.stored), [...trees.keys()])
    assert.equal(second.sent.blobs, 0)
  })
})

describe('removing', () => {
  it('removes what was deleted, and nothing that is gone for another reason', async (t) => {
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

  it('keeps what has left the disk, which is read from there', async (t) => {
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

  it('keeps a pack that was gone when the store was opened', async (t) => {
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

  it('A local store that is emptied by an attacker never empties the mirror.', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 3)
    await mirror.run()
    for (const folder of ['packs', 'index', 'manifests'])
      rmSync(join(mirror.agent.storeDir, folder), { recursive: true })
    const ids = [...trees.keys()]
    // Also where the attacker can tell the database that they were deleted.
    for (const deletedBackups of [[], ids]) {
      const report = await mirror.run({ isThorough: true, deletedBackups })
      assert.equal(report.surplus?.reason, 'store_incomplete')
      assert.equal(report.removed.blobs, 0)
    }
    await assertRestorable(t, mirror.dir, SERVER, trees, ids)
  })

  it('A blob of the mirror is never replaced by one that is damaged here.', async (t) => {
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

  it('Deletions of more than half of the mirror need a confirmation, also little by little', async (t) => {
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

  it('lets the only backup be replaced by another', async (t) => {
    const mirror = await testMirror(t)
    const [first = ''] = (await backups(mirror, 1)).keys()
    await mirror.run()
    const [second = ''] = (await backups(mirror, 1)).keys()
    await remove(mirror, first)
    assert.equal((await mirror.run({ deletedBackups: [first] })).surplus, null)
    assert.deepEqual(namesIn(mirror.dir, 'manifests'), [second])
  })

  it('removes nothing where it may only append, and says how much could go', async (t) => {
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
})
