// The mirror, with a directory in the place of a bucket: what it holds restores without the store that it was made from.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { temporaryFolder } from '../backups/backups.testing.ts'
import { assertRestorable, backups, change, idsOf, namesIn, remove, SERVER, testMirror } from './mirror.testing.ts'

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
    /** From what is there now, a run that is killed before each thing that it would write or remove in turn. */
    const killEverywhere = async (deletedBackups: string[]) => {
      const before = join(temporaryFolder(t), 'before')
      mkdirSync(mirror.dir, { recursive: true })
      cpSync(mirror.dir, before, { recursive: true })
      for (let calls = 1; ; calls++) {
        rmSync(mirror.dir, { recursive: true })
        cpSync(before, mirror.dir, { recursive: true })
        let made = 0
        mirror.faults.before = (call) => {
          if (['put', 'commit', 'delete'].includes(call) && ++made >= calls) throw new Error('killed')
        }
        mirror.restart()
        const isDone = await mirror.run({ isThorough: true, deletedBackups }).then(
          () => true,
          () => false,
        )
        await assertRestorable(t, mirror.dir, SERVER, trees)
        if (isDone) return calls - 1
      }
    }
    // Who it belongs to, its format, two packs, two indexes, two manifests.
    assert.equal(await killEverywhere([]), 8)
    const [first = '', second = ''] = trees.keys()
    await remove(mirror, first)
    const [third = '', tree = {}] = [...(await backups(mirror, 1))][0] ?? []
    trees.set(third, tree)
    assert.ok((await killEverywhere([first])) >= 6)
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

describe('one service for each place', () => {
  it('Two services pointed at one prefix by mistake: the second is refused', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 1)
    await mirror.run()
    const other = await testMirror(t, { dir: mirror.dir })
    await backups(other, 1)
    await assert.rejects(other.run(), { code: 'offsite_taken' })
    await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
    mirror.restart()
    assert.equal((await mirror.run({ isThorough: true })).stored.length, 1)
  })

  it('clears nothing away that another service has not finished', async (t) => {
    const mirror = await testMirror(t)
    await backups(mirror, 1)
    await mirror.run()
    mkdirSync(join(mirror.dir, '.unfinished'), { recursive: true })
    writeFileSync(join(mirror.dir, '.unfinished/upload'), 'half')
    const other = await testMirror(t, { dir: mirror.dir })
    await backups(other, 1)
    await assert.rejects(other.run(), { code: 'offsite_taken' })
    assert.deepEqual(namesIn(mirror.dir, '.unfinished'), ['upload'])
    mirror.restart()
    await mirror.run()
    assert.deepEqual(namesIn(mirror.dir, '.unfinished'), [])
  })

  it('can be taken over, and then the first is refused before it removes anything', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 2)
    await mirror.run()
    const other = await testMirror(t, { dir: mirror.dir })
    await backups(other, 1)
    await other.offsite.claim()
    await other.offsite.claim()
    const report = await other.run()
    assert.equal(report.surplus?.reason, 'store_incomplete')
    await remove(mirror, [...trees.keys()][0] ?? '')
    await assert.rejects(mirror.run({ deletedBackups: [...trees.keys()] }), { code: 'offsite_taken' })
    assert.equal(namesIn(mirror.dir, 'manifests').length, 3)
  })

  it('refuses a place that holds another store, whoever asks', async (t) => {
    const mirror = await testMirror(t)
    await backups(mirror, 1)
    await mirror.run()
    rmSync(join(mirror.dir, 'owner'))
    const other = await testMirror(t, { dir: mirror.dir })
    await backups(other, 1)
    await assert.rejects(other.run(), { code: 'offsite_taken', message: /another store/ })
    const format = JSON.parse(readFileSync(join(mirror.dir, 'format'), 'utf8'))
    writeFileSync(join(mirror.dir, 'format'), JSON.stringify({ ...format, keyCheck: 'another' }))
    await assert.rejects(other.offsite.claim(), { code: 'offsite_taken', message: /another store/ })
  })
})
