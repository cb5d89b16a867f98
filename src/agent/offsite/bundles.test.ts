// Bundles: what a new machine reads of a mirror in few requests, and never more than a help.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { blobsIn, flip, namesIn } from '../../blobs/store.testing.ts'
import { temporaryFolder } from '../backups/backups.testing.ts'
import { decodeBundle } from '../backups/format/bundle.ts'
import { type Bucket, openBucket } from '../backups/offsite.testing.ts'
import { findOffsiteStore, listStore, takeOver } from '../backups/store/recovered-store.ts'
import { assertRestorable, backups, change, remove, SERVER, type TestMirror, testMirror } from './mirror.testing.ts'

/** So many backups, each sent when it was made. */
async function sendEach(mirror: TestMirror, count: number) {
  const trees = new Map()
  for (let made = 0; made < count; made++) {
    for (const [backupId, tree] of await backups(mirror, 1)) trees.set(backupId, tree)
    await mirror.run()
  }
  return trees
}

/** The mirror as a new machine takes it over; what it has asked for besides lists. */
async function recover(t: TestContext, mirror: TestMirror): Promise<{ bucket: Bucket; backupIds: string[] }> {
  const bucket = openBucket(mirror.dir)
  const found = await findOffsiteStore(bucket.open, 'the bucket of a test', null)
  const listed = await listStore(found)
  assert.ok(listed.every(({ damage }) => damage === null))
  const dir = join(temporaryFolder(t), 'backups')
  await takeOver(found, listed, dir, () => {})
  for (const folder of ['index', 'parts', 'manifests']) {
    const here = blobsIn(dir, folder).map((path) => readFileSync(path).toString('hex'))
    const there = blobsIn(mirror.agent.storeDir, folder).map((path) => readFileSync(path).toString('hex'))
    assert.deepEqual(here.sort(), there.sort(), `${folder} are as they were sent`)
  }
  return { bucket, backupIds: listed.map(({ backupId }) => backupId).sort() }
}

const singles = ({ requests }: Bucket) => requests.filter((name) => /^(?:index|parts|manifests)\/./.test(name)).length
const inBundles = ({ dir }: TestMirror) =>
  blobsIn(dir, 'bundles').flatMap((path) => decodeBundle(path, readFileSync(path)).map(({ name }) => name))

it('a new machine reads what many backups have sent in a few requests', async (t) => {
  const mirror = await testMirror(t)
  const trees = await sendEach(mirror, 9)
  assert.equal(namesIn(mirror.dir, 'bundles').length, 1)
  const { bucket, backupIds } = await recover(t, mirror)
  assert.deepEqual(backupIds, [...trees.keys()].sort())
  assert.ok(singles(bucket) < 4, bucket.requests.join())
  await assertRestorable(t, mirror.dir, SERVER, trees, backupIds)
})

it('a process that is started anew goes on with the bundle that is there', async (t) => {
  const mirror = await testMirror(t)
  await sendEach(mirror, 3)
  mirror.restart()
  await sendEach(mirror, 3)
  assert.equal(namesIn(mirror.dir, 'bundles').length, 1)
  assert.ok(inBundles(mirror).length > 8, inBundles(mirror).join())
})

for (const [how, spoil] of [
  ['damaged at its head', (path: string) => flip(path, 20)],
  ['damaged in its middle', (path: string) => flip(path, readFileSync(path).length - 500)],
  ['cut short', (path: string) => writeFileSync(path, readFileSync(path).subarray(0, 1000))],
  ['gone', (path: string) => rmSync(path)],
] as const) {
  it(`a bundle that is ${how} costs requests and nothing else`, async (t) => {
    const mirror = await testMirror(t)
    const trees = await sendEach(mirror, 6)
    spoil(blobsIn(mirror.dir, 'bundles')[0] ?? '')
    const { bucket, backupIds } = await recover(t, mirror)
    assert.ok(singles(bucket) > 0, bucket.requests.join())
    assert.deepEqual(backupIds, [...trees.keys()].sort())
    // What is damaged is not built on.
    mirror.restart()
    await sendEach(mirror, 4)
    await recover(t, mirror)
  })
}

it('what is damaged on the disk does not come into a bundle', async (t) => {
  const mirror = await testMirror(t)
  await sendEach(mirror, 1)
  const [manifest = ''] = blobsIn(mirror.agent.storeDir, 'manifests')
  const whole = readFileSync(manifest)
  flip(manifest, whole.length - 100)
  await sendEach(mirror, 3)
  assert.ok(inBundles(mirror).length > 0 && !inBundles(mirror).some((name) => manifest.endsWith(name)))
  writeFileSync(manifest, whole)
  await recover(t, mirror)
})

/** Which of these the mirror no longer has under their own names. */
const goneOf = ({ dir }: TestMirror, names: readonly string[]) => names.filter((name) => !existsSync(join(dir, name)))

for (const isAppendOnly of [false, true])
  it(`of a bundle of which most is gone ${isAppendOnly ? 'nothing is removed where nothing may be' : 'the rest comes into another'}`, async (t) => {
    const mirror = await testMirror(t, { isAppendOnly })
    const trees = await sendEach(mirror, 8)
    const [bundle = ''] = namesIn(mirror.dir, 'bundles')
    const names = inBundles(mirror)
    const deleted = [...trees.keys()].slice(0, 7)
    for (const backupId of deleted) await remove(mirror, backupId)
    await mirror.run({ isThorough: true, deletedBackups: deleted, confirmedBytes: 2 ** 40 })
    change(mirror)
    await mirror.backup(SERVER)
    await mirror.run()
    assert.equal(namesIn(mirror.dir, 'bundles').includes(bundle), isAppendOnly)
    if (isAppendOnly) return
    assert.ok(goneOf(mirror, names).length * 2 > names.length, 'most of it is gone')
    assert.deepEqual(goneOf(mirror, inBundles(mirror)), [])
    const { backupIds } = await recover(t, mirror)
    assert.equal(backupIds.length, 2)
    assert.ok(deleted.every((backupId) => !backupIds.includes(backupId)))
  })

it('A place that refuses a bundle keeps no backup from being stored.', async (t) => {
  const mirror = await testMirror(t)
  mirror.faults.before = (call, name) => {
    if (call === 'commit' && name.startsWith('bundles/')) throw new Error('refused')
  }
  for (let made = 0; made < 4; made++) {
    change(mirror)
    const { backupId } = await mirror.backup(SERVER)
    const { stored } = await mirror.run()
    assert.deepEqual(stored, [{ serverId: SERVER, backupId }])
  }
  assert.deepEqual(namesIn(mirror.dir, 'bundles'), [])
})
