// Reading from an off-site store: backups whose packs have left the disk, and the day when the disk is gone.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { it, type TestContext } from 'node:test'
import { openLocalStore } from '../../blobs/local.ts'
import { blobsIn, flip } from '../../blobs/store.testing.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, temporaryFolder, testAgent } from './backups.testing.ts'
import { leaveOffsite } from './maintain/keep-local.ts'
import { type Bucket, leaveAll, mirror, openBucket } from './offsite.testing.ts'
import { findOffsiteStore, listStore, takeOver } from './store/recovered-store.ts'

const MB = 1_000_000

function fill(agent: TestAgent, serverId = 'srv_a'): string {
  const root = agent.filesOf(serverId)
  mkdirSync(join(root, 'world'), { recursive: true })
  writeFileSync(join(root, 'world/region'), randomBytes(3 * MB))
  writeFileSync(join(root, 'text'), 'some text '.repeat(40_000))
  for (let index = 0; index < 20; index++) writeFileSync(join(root, `small ${index}`), `small ${index} `.repeat(index))
  return root
}

async function withBucket(t: TestContext): Promise<{ agent: TestAgent; bucket: Bucket }> {
  const bucket = openBucket(temporaryFolder(t))
  const agent = await testAgent(t, { offsite: bucket.open })
  return { agent, bucket }
}

const packsOnDisk = (agent: TestAgent) => blobsIn(agent.storeDir, 'packs')

it('a backup whose packs are only off-site is restored, browsed, downloaded and verified as any other', async (t) => {
  const { agent, bucket } = await withBucket(t)
  const before = snapshot(fill(agent))
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  await leaveAll(agent)
  assert.deepEqual(packsOnDisk(agent), [])
  const store = await agent.backups.store()
  assert.equal(store.awayPackCount, store.packCount)
  assert.equal(store.awayPackBytes, store.packBytes)

  const target = agent.filesOf('srv_b')
  const progress: number[] = []
  const context = {
    taskId: 'job_restore',
    serverId: 'srv_b',
    signal: new AbortController().signal,
    report: ({ bytesDone }: { bytesDone?: number }) => void (bytesDone !== undefined && progress.push(bytesDone)),
  }
  const work = { mode: 'replace', paths: null, safetyBackupId: null } as const
  await agent.backups.handlers['backups.restore'](
    { kind: 'backups.restore', jobId: 'job_1', backupId, sourceServerId: 'srv_a', ...work },
    context,
  )
  assertSameTree(snapshot(target), before)
  assert.ok(progress.length > 0 && (progress.at(-1) ?? 0) > 3 * MB, `${progress}`)
  // One pack, all of it wanted: one request.
  assert.equal(bucket.requests.length, 1, bucket.requests.join())

  const { entries } = await agent.backups.browse({ serverId: 'srv_a', backupId, path: '/', limit: 100, after: null })
  assert.equal(entries.length, 22)
  const { stream } = await agent.backups.readFile({ serverId: 'srv_a', backupId, path: '/text', start: 3, end: 9 })
  assert.equal((await buffer(stream)).toString(), 'e text')
  const request = { serverId: 'srv_a', backupId, format: 'tar', signal: new AbortController().signal } as const
  const { stream: archive, sizeBytes } = await agent.backups.download(request)
  assert.equal((await buffer(archive)).length, sizeBytes)
  assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')).damage, [])
  assert.deepEqual(packsOnDisk(agent), [], 'nothing was brought back')
})

it('reading a file of a backup that is only off-site fetches only the ranges it needs', async (t) => {
  const { agent, bucket } = await withBucket(t)
  fill(agent)
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  await leaveAll(agent)
  await agent.restore('srv_a', backupId, { mode: 'merge', paths: ['/text'] })
  assert.equal(bucket.bytesRead, 0, 'what is as in the backup is not fetched')
  rmSync(join(agent.filesOf('srv_a'), 'text'))
  await agent.restore('srv_a', backupId, { mode: 'merge', paths: ['/text'] })
  assert.ok(bucket.bytesRead > 0 && bucket.bytesRead < MB, `${bucket.bytesRead} bytes`)
})

it('a backup counts on blocks that are only off-site, and sends nothing twice', async (t) => {
  const { agent, bucket } = await withBucket(t)
  const root = fill(agent)
  await agent.create('srv_a')
  mirror(agent, bucket)
  await leaveAll(agent)
  writeFileSync(join(root, 'new'), 'a little more')
  const { backupId, storedBytes } = await agent.create('srv_a')
  assert.ok(storedBytes < 10_000, `${storedBytes} stored`)
  mirror(agent, bucket)
  const before = snapshot(root)
  agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(agent.filesOf('srv_b')), before)
})

it('The service starts without its off-site store: backups are made, and those on the disk restored.', async (t) => {
  const folder = temporaryFolder(t)
  const bucket = openBucket(temporaryFolder(t))
  const first = await startAgent(folder, { offsite: bucket.open })
  const root = fill(first)
  const away = await first.create('srv_a')
  mirror(first, bucket)
  await leaveAll(first)
  await first.stop()
  for (const offsite of [bucket.open, null]) {
    bucket.breakAfter(0)
    const agent = await startAgent(folder, { offsite })
    writeFileSync(join(root, 'more'), randomBytes(100_000))
    const made = await agent.create('srv_a')
    assert.ok(made.storedBytes < 200_000)
    const target = agent.filesOf('srv_b')
    writeFileSync(join(target, 'own'), 'of another server')
    const other = await agent.create('srv_b')
    rmSync(join(target, 'own'))
    await agent.restore('srv_b', other.backupId)
    const before = snapshot(target)
    const restoring = agent.restore('srv_b', away.backupId, { sourceServerId: 'srv_a' })
    await assert.rejects(restoring, { code: 'offsite_unreachable' })
    assertSameTree(snapshot(target), before)
    const verifying = agent.run({ kind: 'backups.verify', backupId: away.backupId }, 'srv_a')
    await assert.rejects(verifying, { code: 'offsite_unreachable' })
    const listed = await agent.backups.list({ serverId: 'srv_a', isThorough: true })
    assert.ok(listed.every(({ damage }) => damage === null))
    assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
    await agent.stop()
  }
  bucket.mend()
  const agent = await startAgent(folder, { offsite: bucket.open })
  t.after(() => agent.stop())
  await agent.restore('srv_b', away.backupId, { sourceServerId: 'srv_a' })
  assert.equal(snapshot(agent.filesOf('srv_b'))['/own'], undefined)
})

it('a restore whose off-site store fails in the middle changes nothing, and works once that answers again', async (t) => {
  const { agent, bucket } = await withBucket(t)
  fill(agent)
  await agent.create('srv_a')
  writeFileSync(join(agent.filesOf('srv_a'), 'another'), randomBytes(2 * MB))
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  await leaveAll(agent)
  const wanted = snapshot(agent.filesOf('srv_a'))
  const target = agent.filesOf('srv_b')
  writeFileSync(join(target, 'old'), 'what was there')
  const before = snapshot(target)
  bucket.breakAfter(1)
  await assert.rejects(agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' }), { code: 'offsite_unreachable' })
  assertSameTree(snapshot(target), before)
  bucket.mend()
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(target), wanted)
})

/** By whatever streams its content; a rehearsal changes nothing either. */
async function assertNothingGiven(agent: TestAgent, backupId: string): Promise<void> {
  const backup = { serverId: 'srv_a', backupId }
  const { signal } = new AbortController()
  const streams = [(await agent.backups.readFile({ ...backup, path: '/text' })).stream]
  for (const format of ['tar', 'zip', 'tar.gz', 'tar.zst'] as const)
    streams.push((await agent.backups.download({ ...backup, format, signal })).stream)
  for (const stream of streams) {
    let bytes = 0
    const read = async () => {
      for await (const chunk of stream) bytes += chunk.length
    }
    await assert.rejects(read(), { code: 'offsite_unreachable' })
    assert.equal(bytes, 0)
  }
  const scratch = agent.filesOf('srv_scratch')
  const rehearsing = agent.backups.restoreInto(agent.files.server('srv_scratch'), backup, { signal, report: () => {} })
  await assert.rejects(rehearsing, { code: 'offsite_unreachable' })
  assert.deepEqual(snapshot(scratch), {})
}

it('nothing is given of a file or an archive, nor rehearsed, while its off-site store cannot be reached', async (t) => {
  const { agent, bucket } = await withBucket(t)
  const root = fill(agent)
  // What comes first of it is in no pack.
  writeFileSync(join(root, 'text'), Buffer.concat([Buffer.alloc(2 * MB), Buffer.from('the end')]))
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  await leaveAll(agent)
  bucket.breakAfter(0)
  await assertNothingGiven(agent, backupId)
})

it('packs that the disk has lost are read from the off-site store', async (t) => {
  const folder = temporaryFolder(t)
  const bucket = openBucket(temporaryFolder(t))
  const first = await startAgent(folder, { offsite: bucket.open })
  const before = snapshot(fill(first))
  const { backupId } = await first.create('srv_a')
  mirror(first, bucket)
  await first.stop()
  rmSync(join(first.storeDir, 'packs'), { recursive: true })
  bucket.breakAfter(0)
  const agent = await startAgent(folder, { offsite: bucket.open })
  t.after(() => agent.stop())
  agent.filesOf('srv_b')
  const restoring = () => agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  await assert.rejects(restoring(), { code: 'offsite_unreachable' })
  await assert.rejects(agent.run({ kind: 'backups.reclaim' }), { code: 'offsite_unreachable' })
  await assertNothingGiven(agent, backupId)
  bucket.mend()
  await restoring()
  assertSameTree(snapshot(agent.filesOf('srv_b')), before)
  assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')).damage, [])
  await agent.run({ kind: 'backups.reclaim' })
  await restoring()
})

it('a flipped byte in the off-site store is found by a verify that is asked for it, and named', async (t) => {
  const { agent, bucket } = await withBucket(t)
  fill(agent)
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  const verify = (isOffsite: boolean) => agent.run({ kind: 'backups.verify', backupId, isOffsite }, 'srv_a')
  const sound = await verify(true)
  assert.deepEqual(sound.damage, [])
  assert.ok(sound.bytesChecked > 2 * (await verify(false)).bytesChecked - 1)
  for (const folder of ['packs', 'manifests']) {
    const [blob = ''] = blobsIn(bucket.dir, folder)
    flip(blob, 100_000 % (folder === 'packs' ? MB : 300))
    assert.deepEqual((await verify(false)).damage, [], 'on the disk all is well')
    const { damage } = await verify(true)
    assert.ok(damage.length > 0)
    assert.ok(
      damage.every((found) => found.isOffsite && blob.endsWith(found.blob)),
      JSON.stringify(damage),
    )
    flip(blob, 100_000 % (folder === 'packs' ? MB : 300))
  }
  // Where it is the only copy, it is damage of the backup.
  const [pack = ''] = blobsIn(bucket.dir, 'packs')
  await leaveAll(agent)
  flip(pack, 100_000)
  const { damage } = await verify(false)
  assert.equal(damage.length, 1)
  assert.ok(damage[0]?.touches.some((touched) => touched.backupId === backupId) && !damage[0].isOffsite)
  agent.filesOf('srv_b')
  const restoring = agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  await assert.rejects(restoring, { code: 'backup_damaged' })
  rmSync(pack)
  assert.ok((await agent.run({ kind: 'backups.scrub', share: 1 })).damage.length > 0, 'a pack that is gone is missed')
})

it('old packs leave the disk, never those that the newest backup of a server needs', async (t) => {
  const { agent, bucket } = await withBucket(t)
  const root = agent.filesOf('srv_a')
  const made: string[] = []
  for (let version = 0; version < 4; version++) {
    writeFileSync(join(root, 'world'), randomBytes(200_000))
    made.push((await agent.create('srv_a')).backupId)
  }
  writeFileSync(join(agent.filesOf('srv_b'), 'small'), randomBytes(50_000))
  const other = await agent.create('srv_b')
  mirror(agent, bucket)
  const repository = await agent.backups.repository()
  const stored = new Map<string, number>()
  for await (const { name, sizeBytes } of (await bucket.open()).list('packs/')) stored.set(name, sizeBytes)
  const { signal } = new AbortController()
  const leave = (keep: { bytes: number } | { ms: number }, at = Date.now(), there = stored) =>
    leaveOffsite(repository, { keep, stored: there, now: at, signal })

  assert.deepEqual(await leave({ ms: 3600_000 }), { packs: 0, bytes: 0 })
  assert.deepEqual(await leave({ bytes: 10 * MB }), { packs: 0, bytes: 0 })
  assert.deepEqual(
    await leave({ bytes: 0 }, Date.now(), new Map()),
    { packs: 0, bytes: 0 },
    'nothing that was not sent',
  )
  // Two of four have to go to come below it.
  assert.equal((await leave({ bytes: 500_000 })).packs, 2)
  assert.equal(packsOnDisk(agent).length, 3)
  assert.equal((await leave({ ms: 3600_000 }, Date.now() + 3 * 3600_000)).packs, 1)
  assert.equal((await leave({ bytes: 0 })).packs, 0, 'the rest is needed')
  bucket.breakAfter(0)
  await agent.restore('srv_a', made[3] ?? '')
  await agent.restore('srv_b', other.backupId)
  rmSync(join(root, 'world'))
  await assert.rejects(agent.restore('srv_a', made[0] ?? ''), { code: 'offsite_unreachable' })
  bucket.mend()
  await agent.restore('srv_a', made[0] ?? '')
})

it('a reclaim fetches nothing: notes of packs that nobody needs go, and the others stay', async (t) => {
  const { agent, bucket } = await withBucket(t)
  const root = agent.filesOf('srv_a')
  const made: string[] = []
  for (let version = 0; version < 3; version++) {
    writeFileSync(join(root, 'world'), randomBytes(200_000))
    // Of each pack only this is needed in the end.
    writeFileSync(join(root, `kept ${version}`), randomBytes(1000))
    made.push((await agent.create('srv_a')).backupId)
  }
  rmSync(join(root, 'kept 0'))
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  await leaveAll(agent)
  for (const id of made) await agent.backups.remove({ serverId: 'srv_a', backupId: id })
  const requests = bucket.requests.length
  const { packsDeleted, packsRewritten } = await agent.run({ kind: 'backups.reclaim' })
  assert.deepEqual([packsDeleted, packsRewritten], [1, 0])
  assert.equal(bucket.requests.length, requests)
  assert.equal((await agent.backups.store()).awayPackCount, 2)
  const before = snapshot(root)
  agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(agent.filesOf('srv_b')), before)
})

it('From the off-site store alone every backup comes back, with its server and its lock', async (t) => {
  for (const key of [null, randomBytes(32)]) await comesBack(t, key)
})

async function comesBack(t: TestContext, key: Buffer | null): Promise<void> {
  const bucket = openBucket(temporaryFolder(t))
  const old = await startAgent(temporaryFolder(t), { offsite: bucket.open, key })
  const before = snapshot(fill(old))
  const first = await old.create('srv_a', { isLocked: true })
  fill(old, 'srv_b')
  const second = await old.create('srv_b')
  await old.backups.setLock({ serverId: 'srv_b', backupId: second.backupId, isLocked: true })
  mirror(old, bucket)
  await old.stop()
  rmSync(old.dataDir, { recursive: true })
  mkdirSync(old.dataDir)

  const openAt = (dir: string) => () => openLocalStore(dir, { clear: false, isReadOnly: true })
  await assert.rejects(findOffsiteStore(openAt(bucket.dir), 's3://bucket', randomBytes(32)), { code: 'wrong_key' })
  await assert.rejects(findOffsiteStore(openAt(`${bucket.dir}/none`), 's3://none', key), { code: 'no_store' })
  const found = await findOffsiteStore(openAt(bucket.dir), 's3://bucket', key)
  const listed = await listStore(found)
  assert.deepEqual(
    listed.map(({ backupId, backup, damage }) => [backupId, backup?.isLocked, damage]).sort(),
    [first, second].map(({ backupId }) => [backupId, true, null]).sort(),
  )
  const taken = await takeOver(found, listed, old.storeDir, () => {})
  assert.ok(taken.bytes < MB, 'no pack is copied')
  assert.deepEqual(await takeOver(found, listed, old.storeDir, () => {}), { blobCount: 0, bytes: 0 })

  const agent = await startAgent(old.dataDir, { offsite: bucket.open, key })
  t.after(() => agent.stop())
  const locked = await agent.backups.list({ serverId: null })
  assert.ok(locked.length === 2 && locked.every(({ backup }) => backup?.isLocked))
  const target = agent.filesOf('srv_c')
  await agent.restore('srv_c', first.backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(target), before)
  const again = await agent.create('srv_c')
  assert.ok(again.storedBytes < 10_000, `${again.storedBytes} stored: its blocks are off-site`)
}
