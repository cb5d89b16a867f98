// The mirror in a real bucket, whose blobs are files that can be looked at.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { startVersityGw, type VersityGw } from '../../../test/support/versitygw.ts'
import { createBucket } from '../../blobs/bucket.ts'
import { namesIn } from '../../blobs/store.testing.ts'
import type { Tree } from '../backups/backups.testing.ts'
import { assertRestorable, SERVER, type TestMirror, testMirror } from './mirror.testing.ts'
import { s3Target } from './s3-target.ts'

describe('a bucket', needs('versitygw'), () => {
  let gw: VersityGw
  before(async () => {
    gw = await startVersityGw()
  })
  after(() => gw.stop())

  const targetOf = (prefix: string, keys = gw.keys) =>
    s3Target(createBucket({ place: gw.place(prefix), keys }), {
      place: gw.place(prefix),
      bytesPerSecond: null,
      isAppendOnly: false,
    })
  const mirrorIn = (t: TestContext, prefix: string) => testMirror(t, { ...targetOf(prefix), dir: join(gw.dir, prefix) })

  async function backup(mirror: TestMirror): Promise<Map<string, Tree>> {
    writeFileSync(join(mirror.agent.filesOf(SERVER), 'region'), randomBytes(3_000_000))
    const { backupId, tree } = await mirror.backup(SERVER)
    return new Map([[backupId, tree]])
  }

  it('holds every backup, and loses what was deleted', async (t) => {
    const mirror = await mirrorIn(t, 'castle')
    // Three, so that one is well below half of the mirror.
    const trees = new Map([...(await backup(mirror)), ...(await backup(mirror)), ...(await backup(mirror))])
    const ids = [...trees.keys()]
    assert.equal((await mirror.run({ isThorough: true })).stored.length, 3)
    await assertRestorable(t, mirror.dir, SERVER, trees, ids)
    const [first = '', second = '', third = ''] = ids
    await mirror.agent.backups.setLock({ serverId: SERVER, backupId: second, isLocked: true })
    await mirror.agent.backups.remove({ serverId: SERVER, backupId: first })
    await mirror.agent.run({ kind: 'backups.reclaim' })
    const report = await mirror.run({ deletedBackups: [first] })
    assert.equal(report.surplus, null)
    assert.ok(report.removed.bytes > 3_000_000)
    await assertRestorable(t, mirror.dir, SERVER, trees, [second, third])
    assert.deepEqual(namesIn(mirror.dir, 'locks'), [second])
  })

  it('that has kept only a part of what says how it is made is put right by the next run', async (t) => {
    const mirror = await mirrorIn(t, 'format')
    const trees = await backup(mirror)
    await mirror.run()
    const format = join(mirror.dir, 'format')
    const whole = readFileSync(format)
    truncateSync(format, 10)
    await mirror.run({ isThorough: true })
    assert.ok(readFileSync(format).equals(whole))
    await assertRestorable(t, mirror.dir, SERVER, trees)
  })

  it('that goes away in the middle has everything once it is back', async (t) => {
    const mirror = await mirrorIn(t, 'interrupted')
    const trees = await backup(mirror)
    await mirror.run()
    await gw.kill()
    for (const [id, tree] of await backup(mirror)) trees.set(id, tree)
    const abort = new AbortController()
    const running = mirror.run({}, abort.signal)
    abort.abort(new Error('enough'))
    await assert.rejects(running, { message: 'enough' })
    await gw.start()
    assert.equal((await mirror.run({ isThorough: true })).stored.length, 2)
    await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
  })

  it('says in words what is wrong, and refuses a second service', async (t) => {
    const mirror = await mirrorIn(t, 'words')
    await backup(mirror)
    await mirror.run()
    const second = await mirrorIn(t, 'words')
    await backup(second)
    await assert.rejects(second.run(), { code: 'offsite_taken' })
    const wrong = { ...gw.keys, secretAccessKey: 'not-the-secret' }
    const locked = await testMirror(t, { ...targetOf('words', wrong), dir: mirror.dir })
    await backup(locked)
    await assert.rejects(locked.run(), { code: 'offsite_unreachable', detail: /secret/ })
  })
})
