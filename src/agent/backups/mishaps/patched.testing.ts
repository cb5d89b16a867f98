// What the tests of patched blocks share: files that are changed as a game changes them, and what a backup lists of them.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { blobsIn } from '../../../blobs/store.testing.ts'
import { assertSameTree, snapshot, type TestAgent } from '../backups.testing.ts'
import { namesOf } from '../format/block-runs.ts'
import { BLOCK_BYTES, SECTOR_BYTES } from '../format/format.ts'
import { openManifest } from '../format/manifest.ts'
import { patchAt } from '../format/patched.ts'

export const SERVER = 'srv_a'

/** A region file of that many blocks, nothing of which can be compressed. */
export function makeRegion(agent: TestAgent, blocks = 32, name = 'region'): string {
  const path = join(agent.filesOf(SERVER), name)
  writeFileSync(path, randomBytes(blocks * BLOCK_BYTES))
  return path
}

/** In place, as a game that saves does: in that block, so many sectors from that one on. */
export function save(
  path: string,
  block: number,
  sector: number,
  sectors = 1,
  bytes = randomBytes(sectors * SECTOR_BYTES),
): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, block * BLOCK_BYTES + sector * SECTOR_BYTES)
  closeSync(file)
}

/** Which of its blocks are listed as patches, and of what. */
export async function patchesIn(agent: TestAgent, backupId: string, path = '/region') {
  const { blobs, sealer } = await agent.backups.repository()
  const entry = await (await openManifest(blobs, sealer, { serverId: SERVER, backupId })).find(path)
  assert.ok(entry)
  const patches = new Map<number, { sectors: number; base: string; patch: string }>()
  namesOf(entry.content, (block, at) => {
    const { sectors, base, patch } = patchAt(entry.content, at)
    const hex = (id: Uint8Array) => Buffer.from(id).toString('hex')
    patches.set(block, { sectors, base: hex(base), patch: hex(patch) })
  })
  return patches
}

export async function assertRestored(agent: TestAgent, backupId: string, expected: ReturnType<typeof snapshot>) {
  const target = agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: SERVER })
  assertSameTree(snapshot(target), expected)
}

export async function assertSound(agent: TestAgent, backupId: string) {
  const { damage } = await agent.run({ kind: 'backups.verify', backupId }, SERVER)
  assert.deepEqual(damage, [])
}

/** Bytes of it are others on the disk than were written. */
export async function damage(agent: TestAgent, id: string): Promise<void> {
  const { index } = await agent.backups.repository()
  const place = index.place(index.findAny(Buffer.from(id, 'hex')))
  const pack = blobsIn(agent.storeDir, 'packs').find((file) => file.endsWith(place.packId)) ?? ''
  const bytes = readFileSync(pack)
  bytes.fill(0xff, place.offset + 100, place.offset + 110)
  writeFileSync(pack, bytes)
}
