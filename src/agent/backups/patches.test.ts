// Blocks of which few sectors have changed: they are listed as patches of what they were.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { snapshot, startAgent, temporaryFolder, testAgent } from './backups.testing.ts'
import {
  BLOCK_BYTES,
  FORMAT_BLOB,
  manifestBlob,
  PARTS_VERSION,
  PATCHES_VERSION,
  SECTOR_BYTES,
} from './format/format.ts'
import { openManifest } from './format/manifest.ts'
import { BLOCK_SECTORS, countSectors, PATCHED_SECTORS_AT_MOST } from './format/patched.ts'
import { raiseVersion } from './format/store-format.ts'
import { assertRestored, assertSound, makeRegion, patchesIn, SERVER, save } from './mishaps/patched.testing.ts'
import { leaveAll, mirror, openBucket } from './offsite.testing.ts'
import { findStore, listStore, takeOver } from './store/recovered-store.ts'

const MIB = 1024 * 1024

for (const key of [null, randomBytes(32)])
  for (const blockHash of ['sha-256', 'blake2b-256'] as const)
    it(`a few changed sectors add those and not their blocks (${key ? 'encrypted' : 'in the clear'}, ${blockHash})`, async (t) => {
      const agent = await testAgent(t, { key, blockHash })
      const path = makeRegion(agent)
      const first = await agent.create(SERVER)
      const before = snapshot(agent.filesOf(SERVER))
      save(path, 3, 5, 2)
      save(path, 20, 15)
      save(path, 21, 0)
      const { backupId, storedBytes } = await agent.create(SERVER)
      const patches = await patchesIn(agent, backupId)
      assert.deepEqual(
        [...patches].map(([block, { sectors }]) => [block, sectors]),
        [
          [3, 0b1100000],
          [20, 1 << 15],
          [21, 1],
        ],
      )
      assert.ok(storedBytes < 6 * SECTOR_BYTES, `${storedBytes} bytes were added`)
      await assertSound(agent, backupId)
      await assertRestored(agent, backupId, snapshot(agent.filesOf(SERVER)))
      await assertRestored(agent, first.backupId, before)
    })

it('what has changed in more sectors than a patch may have is stored whole', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  await agent.create(SERVER)
  save(path, 1, 0, PATCHED_SECTORS_AT_MOST)
  save(path, 2, 0, PATCHED_SECTORS_AT_MOST + 1)
  save(path, 4, 0, BLOCK_SECTORS)
  const { backupId } = await agent.create(SERVER)
  assert.deepEqual([...(await patchesIn(agent, backupId)).keys()], [1])
  await assertRestored(agent, backupId, snapshot(agent.filesOf(SERVER)))
})

it('a patch is never one of a patch', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  const original = readFileSync(path)
  await agent.create(SERVER)
  save(path, 7, 2)
  const second = await agent.create(SERVER)
  const tree = snapshot(agent.filesOf(SERVER))
  save(path, 7, 9)
  save(path, 12, 1)
  const third = await agent.create(SERVER)
  const [before, after] = [await patchesIn(agent, second.backupId), await patchesIn(agent, third.backupId)]
  assert.equal(before.get(7)?.base, after.get(7)?.base)
  assert.deepEqual([before.get(7)?.sectors, after.get(7)?.sectors], [1 << 2, (1 << 2) | (1 << 9)])
  await assertRestored(agent, third.backupId, snapshot(agent.filesOf(SERVER)))
  await assertRestored(agent, second.backupId, tree)
  writeFileSync(path, original)
  const { backupId, storedBytes } = await agent.create(SERVER)
  assert.equal((await patchesIn(agent, backupId)).size, 0)
  assert.equal(storedBytes, 0)
})

it('a patch that grows is stored whole before it repeats too much, and one that does not grow never is', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  await agent.create(SERVER)
  const counts: (number | undefined)[][] = []
  for (let round = 0; round < 8; round++) {
    save(path, 3, round)
    save(path, 9, 4, 9)
    const patches = await patchesIn(agent, (await agent.create(SERVER)).backupId)
    counts.push([3, 9].map((block) => countSectors(patches.get(block)?.sectors ?? 0)))
  }
  assert.deepEqual(
    counts.map(([growing]) => growing),
    [1, 2, 3, 4, 5, 6, 0, 1],
  )
  assert.deepEqual(
    counts.map(([, same]) => same),
    new Array(8).fill(9),
  )
})

it('what is listed as a patch and has not changed is found as such, also after a restart', async (t) => {
  const folder = temporaryFolder(t)
  let agent = await startAgent(folder)
  const path = makeRegion(agent)
  await agent.create(SERVER)
  for (const block of [1, 5, 6, 30]) save(path, block, 3)
  const second = await agent.create(SERVER)
  for (const isReopened of [false, true]) {
    if (isReopened) {
      await agent.stop()
      agent = await startAgent(folder)
    }
    save(path, 10, isReopened ? 1 : 0)
    const { backupId, storedBytes } = await agent.create(SERVER)
    assert.ok(storedBytes < 3 * SECTOR_BYTES, `${storedBytes} bytes were added`)
    const [before, now] = [await patchesIn(agent, second.backupId), await patchesIn(agent, backupId)]
    for (const [block, patch] of before) assert.deepEqual(now.get(block), patch)
    await assertRestored(agent, backupId, snapshot(agent.filesOf(SERVER)))
  }
  await agent.stop()
})

it('a file that grows, shrinks or ends in the middle of a block is what it was', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  await agent.create(SERVER)
  for (const size of [31.5 * BLOCK_BYTES, 40 * BLOCK_BYTES + 17, 17 * BLOCK_BYTES + 4096, MIB]) {
    save(path, 2, 2)
    truncateSync(path, size)
    save(path, Math.floor(size / BLOCK_BYTES) - 1, 15, 1, randomBytes(SECTOR_BYTES + 4000))
    truncateSync(path, size)
    const { backupId } = await agent.create(SERVER)
    await assertSound(agent, backupId)
    await assertRestored(agent, backupId, snapshot(agent.filesOf(SERVER)))
  }
})

it('what a patch needs stays when the backup that stored it is deleted and its space given back', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  const first = await agent.create(SERVER)
  save(path, 3, 5)
  // The rest of what the first backup has is needed by nobody afterwards.
  for (let block = 8; block < 32; block++) save(path, block, 0, BLOCK_SECTORS)
  const second = await agent.create(SERVER)
  assert.deepEqual([...(await patchesIn(agent, second.backupId)).keys()], [3])
  await agent.backups.remove({ serverId: SERVER, backupId: first.backupId })
  const { freedBytes } = await agent.run({ kind: 'backups.reclaim' })
  assert.ok(freedBytes > MIB, `${freedBytes} bytes were given back`)
  await assertSound(agent, second.backupId)
  await assertRestored(agent, second.backupId, snapshot(agent.filesOf(SERVER)))
})

it('any range of a patched file is read as it is', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  await agent.create(SERVER)
  save(path, 3, 5, 2)
  save(path, 3, 9)
  save(path, 4, 0)
  const { backupId } = await agent.create(SERVER)
  const content = readFileSync(path)
  const [from, to] = [3 * BLOCK_BYTES, 5 * BLOCK_BYTES]
  const edges = [
    from - 1,
    from,
    from + 5 * SECTOR_BYTES,
    from + 5 * SECTOR_BYTES + 1,
    from + 9 * SECTOR_BYTES,
    to - 1,
    to + 1,
  ]
  for (const start of edges)
    for (const end of edges.filter((edge) => edge > start)) {
      const { stream } = await agent.backups.readFile({ serverId: SERVER, backupId, path: '/region', start, end })
      assert.ok(Buffer.concat(await stream.toArray()).equals(content.subarray(start, end)), `${start} to ${end}`)
    }
})

it('a file is the same in two backups whether it is listed as patched or not', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  const copy = makeRegion(agent, 17, 'copy')
  await agent.create(SERVER)
  save(path, 3, 5)
  const second = await agent.create(SERVER)
  // A file of another name has nothing that it could be a patch of.
  writeFileSync(copy, readFileSync(path))
  const third = await agent.create(SERVER)
  assert.equal((await patchesIn(agent, third.backupId, '/copy')).size, 0)
  writeFileSync(path, readFileSync(copy))
  const fourth = await agent.create(SERVER)
  const page = { limit: 10, after: null }
  const signal = new AbortController().signal
  const { changes } = await agent.backups.compare(
    { serverId: SERVER, from: second.backupId, to: fourth.backupId, ...page },
    signal,
  )
  assert.deepEqual(
    changes.map((change) => change.path),
    ['/copy'],
  )
  const live = await agent.backups.compare({ serverId: SERVER, from: second.backupId, to: null, ...page }, signal)
  assert.deepEqual(
    live.changes.map((change) => change.path),
    ['/copy'],
  )
  const versions = await agent.backups.versions({ serverId: SERVER, path: '/region' })
  assert.equal(new Set(versions.map(({ version }) => version)).size, 2)
})

it('a store says that it may list patches before a backup does, and a backup that does says so too', async (t) => {
  const agent = await testAgent(t)
  const versionOf = async () => JSON.parse(readFileSync(join(agent.storeDir, FORMAT_BLOB), 'utf8')).version
  const path = makeRegion(agent)
  await agent.create(SERVER)
  assert.equal(await versionOf(), 2)
  save(path, 3, 5)
  const { blobs, sealer } = await agent.backups.repository()
  const { put } = blobs
  const order: string[] = []
  blobs.put = (name, bytes) => {
    order.push(name)
    return put.call(blobs, name, bytes)
  }
  const { backupId } = await agent.create(SERVER)
  assert.deepEqual(order.slice(-2), [FORMAT_BLOB, manifestBlob(SERVER, backupId)])
  assert.equal(await versionOf(), PATCHES_VERSION)
  writeFileSync(join(agent.filesOf(SERVER), 'other'), 'x')
  const next = await agent.create(SERVER)
  for (const id of [backupId, next.backupId])
    assert.equal((await openManifest(blobs, sealer, { serverId: SERVER, backupId: id })).meta.version, PATCHES_VERSION)
})

it('no backup that runs at the same time sets the version of the store back', async (t) => {
  const agent = await testAgent(t)
  const { blobs } = await agent.backups.repository()
  const { put, get } = blobs
  // Where both have read before one has written, the one that wants the lower version is the last to write.
  const higher = Promise.withResolvers<void>()
  let reads = 0
  blobs.get = async (name, range, into) => {
    const bytes = await get.call(blobs, name, range, into)
    if (name === FORMAT_BLOB) reads++
    return bytes
  }
  blobs.put = async (name, bytes) => {
    const { version } = name === FORMAT_BLOB ? JSON.parse(Buffer.from(bytes).toString()) : { version: 0 }
    for (let left = 100; version === PARTS_VERSION && reads < 2 && left > 0; left--)
      await new Promise((resolve) => setImmediate(resolve))
    if (version === PARTS_VERSION && reads > 1) await higher.promise
    await put.call(blobs, name, bytes)
    if (version === PATCHES_VERSION) higher.resolve()
  }
  await Promise.all([raiseVersion(blobs, PARTS_VERSION), raiseVersion(blobs, PATCHES_VERSION)])
  assert.equal(JSON.parse(readFileSync(join(agent.storeDir, FORMAT_BLOB), 'utf8')).version, PATCHES_VERSION)
})

it('what is patched is restored, read and recovered from a bucket', async (t) => {
  const folder = temporaryFolder(t)
  const bucket = openBucket(temporaryFolder(t))
  const agent = await startAgent(folder, { offsite: bucket.open })
  t.after(() => agent.stop())
  const path = makeRegion(agent)
  await agent.create(SERVER)
  // So few that a slow disk does not keep them from being patches.
  const changed = [1, 10, 19, 28]
  for (const block of changed) save(path, block, block % 12, 1 + (block % 4))
  const { backupId } = await agent.create(SERVER)
  assert.deepEqual([...(await patchesIn(agent, backupId)).keys()], changed)
  mirror(agent, bucket)
  await leaveAll(agent)
  // What is not here cannot be compared with: no patch of it, and no request for it.
  bucket.requests.length = 0
  save(path, 2, 2)
  const third = await agent.create(SERVER)
  assert.deepEqual(bucket.requests, [])
  assert.equal((await patchesIn(agent, third.backupId)).has(2), false)
  mirror(agent, bucket)
  await assertRestored(agent, third.backupId, snapshot(agent.filesOf(SERVER)))
  const { stream } = await agent.backups.readFile({ serverId: SERVER, backupId: third.backupId, path: '/region' })
  assert.ok(Buffer.concat(await stream.toArray()).equals(readFileSync(path)))
  const fresh = await testAgent(t)
  await fresh.stop()
  const found = await findStore(bucket.dir, null)
  await takeOver(found, await listStore(found), fresh.storeDir, () => {})
  const again = await startAgent(fresh.dataDir)
  t.after(() => again.stop())
  await assertRestored(again, third.backupId, snapshot(agent.filesOf(SERVER)))
})
