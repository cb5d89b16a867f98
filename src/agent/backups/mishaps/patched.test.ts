// What becomes of patched blocks where something that they are made of is damaged.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { openLocalStore } from '../../../blobs/local.ts'
import { assertSameTree, snapshot, startAgent, temporaryFolder, testAgent } from '../backups.testing.ts'
import { BLOCK_BYTES, manifestBlob } from '../format/format.ts'
import { openManifest } from '../format/manifest.ts'
import { createManifest } from '../format/manifest-writer.ts'
import { BLOCK_SECTORS } from '../format/patched.ts'
import { mirror, openBucket } from '../offsite.testing.ts'
import { assertRestored, assertSound, damage, makeRegion, patchesIn, SERVER, save } from './patched.testing.ts'

for (const lost of ['base', 'patch'] as const)
  it(`a damaged ${lost} is told of every backup that needs it, and healed by the next one that has the content`, async (t) => {
    const agent = await testAgent(t)
    const path = makeRegion(agent)
    const first = await agent.create(SERVER)
    save(path, 3, 5)
    const second = await agent.create(SERVER)
    const tree = snapshot(agent.filesOf(SERVER))
    const id = (await patchesIn(agent, second.backupId)).get(3)?.[lost] ?? ''
    await damage(agent, id)
    agent.filesOf('srv_b')
    await assert.rejects(agent.restore('srv_b', second.backupId, { sourceServerId: SERVER }), {
      code: 'backup_damaged',
    })
    const report = await agent.run({ kind: 'backups.verify', backupId: second.backupId }, SERVER)
    const [found] = report.damage.filter(({ blockId }) => blockId === id)
    const touched = lost === 'base' ? [first.backupId, second.backupId] : [second.backupId]
    assert.deepEqual(found?.touches.map(({ backupId }) => backupId).sort(), touched.sort())
    const third = await agent.create(SERVER)
    // What comes later needs neither of what is lost, nor the backup that has healed it.
    save(path, 3, 0, BLOCK_SECTORS)
    const fourth = await agent.create(SERVER)
    await assertSound(agent, third.backupId)
    await agent.backups.remove({ serverId: SERVER, backupId: third.backupId })
    await agent.run({ kind: 'backups.reclaim' })
    await assertSound(agent, second.backupId)
    await assertRestored(agent, second.backupId, tree)
    const { stream } = await agent.backups.readFile({ serverId: SERVER, backupId: second.backupId, path: '/region' })
    assert.equal(
      (await stream.toArray()).reduce((sum, bytes) => sum + bytes.length, 0),
      32 * BLOCK_BYTES,
    )
    await assertRestored(agent, fourth.backupId, snapshot(agent.filesOf(SERVER)))
    const listed = await agent.backups.list({ serverId: SERVER, isThorough: true })
    assert.ok(listed.every(({ areBlocksMissing }) => !areBlocksMissing))
  })

it('what is read is compared with the id that was asked for, also where that stands in a place that was just read', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  await agent.create(SERVER)
  save(path, 3, 5)
  const { backupId } = await agent.create(SERVER)
  const patch = (await patchesIn(agent, backupId)).get(3)
  const { index } = await agent.backups.repository()
  const base = index.findAny(Buffer.from(patch?.base ?? '', 'hex'))
  const { findAny } = index
  // As if somebody had written into a table that the one is where the other is.
  index.findAny = (id, at = 0) => {
    const isPatch = Buffer.from(id.subarray(at, at + 32)).toString('hex') === patch?.patch
    return isPatch ? base : findAny.call(index, id, at)
  }
  const { stream } = await agent.backups.readFile({ serverId: SERVER, backupId, path: '/region' })
  await assert.rejects(stream.toArray(), { code: 'backup_damaged' })
})

it('a block that is in the file twice is stored whole where what it was a patch of is damaged', async (t) => {
  const agent = await testAgent(t)
  const path = makeRegion(agent)
  await agent.create(SERVER)
  save(path, 3, 5)
  const second = await agent.create(SERVER)
  await damage(agent, (await patchesIn(agent, second.backupId)).get(3)?.base ?? '')
  await agent.run({ kind: 'backups.verify', backupId: second.backupId }, SERVER)
  save(path, 1, 0, BLOCK_SECTORS, readFileSync(path).subarray(3 * BLOCK_BYTES, 4 * BLOCK_BYTES))
  const third = await agent.create(SERVER)
  await assertSound(agent, third.backupId)
  await assertRestored(agent, third.backupId, snapshot(agent.filesOf(SERVER)))
})

it('a manifest that is brought back from a bucket never makes the store one that nobody can open', async (t) => {
  const bucket = openBucket(temporaryFolder(t))
  const folder = temporaryFolder(t)
  const agent = await startAgent(folder, { offsite: bucket.open })
  makeRegion(agent)
  const { backupId } = await agent.create(SERVER)
  mirror(agent, bucket)
  const { sealer } = await agent.backups.repository()
  const place = { serverId: SERVER, backupId }
  const there = await openLocalStore(bucket.dir, { clear: false })
  const { meta, entries } = await openManifest(there, sealer, place)
  const forged = createManifest(there, sealer, place, undefined)
  for await (const entry of entries()) await forged.add(entry)
  await forged.finish({ ...meta, version: 99 } as Omit<typeof meta, 'version'>)
  rmSync(join(agent.storeDir, manifestBlob(SERVER, backupId)))
  const target = agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: SERVER })
  assertSameTree(snapshot(target), snapshot(agent.filesOf(SERVER)))
  assert.ok(existsSync(join(agent.storeDir, manifestBlob(SERVER, backupId))))
  await agent.stop()
  await (await startAgent(folder)).stop()
})
