// Whose a place is, and what it says about itself.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { namesIn } from '../../blobs/store.testing.ts'
import { assertRestorable, backups, remove, SERVER, testMirror } from './mirror.testing.ts'

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

  it('of a service and a copy of it, the one that was started first is refused from then on, and so is an older state of either', async (t) => {
    const mirror = await testMirror(t)
    const trees = await backups(mirror, 2)
    await mirror.run()
    const record = join(mirror.agent.dataDir, 'mirror.json')
    const before = readFileSync(record)
    // A copy of the data directory, as far as the mirror can tell.
    const copy = await testMirror(t, { dir: mirror.dir })
    writeFileSync(join(copy.agent.dataDir, 'mirror.json'), before)
    await backups(copy, 1)
    assert.equal((await copy.run()).surplus?.reason, 'store_incomplete')
    await remove(mirror, [...trees.keys()][0] ?? '')
    await assert.rejects(mirror.run({ deletedBackups: [...trees.keys()] }), {
      code: 'offsite_taken',
      message: /a copy of this service/,
    })
    mirror.restart()
    await assert.rejects(mirror.run(), { code: 'offsite_taken' })
    await mirror.offsite.claim()
    await mirror.run()
    // Set back to what it was before.
    writeFileSync(record, before)
    mirror.restart()
    await assert.rejects(mirror.run(), { code: 'offsite_taken' })
    assert.equal(namesIn(mirror.dir, 'manifests').length, 3)
  })

  it('a start that is cut short at any step of its claim is followed by one that has the place', async (t) => {
    const mirror = await testMirror(t)
    await backups(mirror, 1)
    await mirror.run()
    for (const [call, isAfter] of [
      ['put', false],
      ['put', true],
      ['get', false],
      ['get', true],
    ] as const) {
      await backups(mirror, 1)
      mirror.restart()
      let hasWritten = false
      mirror.faults.before = (made, name) => {
        if (name !== 'owner') return
        if (made === 'put') hasWritten = true
        if (made === call && (call === 'put' ? !isAfter : hasWritten && !isAfter)) throw new Error('killed')
      }
      mirror.faults.keepsPart = (name) => name === 'owner' && isAfter
      await assert.rejects(mirror.run())
      delete mirror.faults.before
      delete mirror.faults.keepsPart
      mirror.restart()
      await mirror.run()
    }
  })

  it('has the place also where two in a row were killed, the first when its claim was there, the second before', async (t) => {
    const mirror = await testMirror(t)
    await backups(mirror, 1)
    await mirror.run()
    await backups(mirror, 1)
    for (const killedAt of ['get', 'put']) {
      mirror.restart()
      let isWritten = killedAt === 'put'
      mirror.faults.before = (call, name) => {
        if (name !== 'owner') return
        if (call === killedAt && isWritten) throw new Error('killed')
        if (call === 'put') isWritten = true
      }
      await assert.rejects(mirror.run())
    }
    delete mirror.faults.before
    mirror.restart()
    assert.equal((await mirror.run()).sent.blobs > 0, true)
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

  it('a claim or a format of which the place keeps only a part is put right by the next run', async (t) => {
    for (const blob of ['owner', 'format']) {
      const mirror = await testMirror(t)
      const trees = await backups(mirror, 1)
      mirror.faults.keepsPart = (name) => name === blob
      await assert.rejects(mirror.run(), { code: 'offsite_unreachable', message: /acknowledged/ })
      assert.deepEqual(namesIn(mirror.dir, 'manifests'), [])
      delete mirror.faults.keepsPart
      await mirror.run()
      await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
    }
    // Where something was sent, a claim that cannot be read is somebody's.
    const mirror = await testMirror(t)
    await backups(mirror, 1)
    await mirror.run()
    truncateSync(join(mirror.dir, 'owner'), 10)
    await assert.rejects(mirror.run(), { code: 'offsite_taken' })
  })
})
