// What manifests share: how much it saves, that nothing is lost by it, and what becomes of damage.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import fc from 'fast-check'
import type { BlobStore } from '../../../blobs/store.ts'
import { temporaryFolder } from '../backups.testing.ts'
import { FORMAT_BLOB, partBlob } from './format.ts'
import { createBackups, SERVER, sorted, treeOf } from './manifest.testing.ts'
import type { Manifest } from './manifest.ts'
import { checkPart } from './parts.ts'
import { createSealer } from './seal.ts'

const SMALL = { chunkBytes: 1000, ownBytes: 2000 }

const numbered = (number: number) => `/world/region/${Math.floor(number / 100)}/r.${number}.mca`
const treeWith = (count: number) => new Map(Array.from({ length: count }, (_, number) => [numbered(number), 1]))

async function bytesIn(blobs: BlobStore): Promise<number> {
  let bytes = 0
  for await (const { sizeBytes } of blobs.list('')) bytes += sizeBytes
  return bytes
}

async function partsIn(blobs: BlobStore): Promise<string[]> {
  return (await Array.fromAsync(blobs.list('parts/'))).map(({ name }) => name).sort()
}

function flip(folder: string, name: string, at: number): void {
  const path = join(folder, name)
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(path, bytes)
}

it('Of 100,000 files, a backup in which one has changed adds at most 128 KiB to the store besides the file itself, and one in which nothing has, 16 KiB.', async (t) => {
  const { blobs, backUp } = await createBackups(temporaryFolder(t), null)
  const tree = treeWith(100_000)
  const { manifest: first } = await backUp(tree)
  const whole = await bytesIn(blobs)
  assert.ok(whole > 3_000_000, `${whole}`)
  const { manifest: second } = await backUp(tree, first)
  const unchanged = (await bytesIn(blobs)) - whole
  assert.ok(unchanged <= 16 * 1024, `nothing changed: ${unchanged} bytes`)
  assert.equal((await partsIn(blobs)).length, 1)
  let last = second
  for (const [number, unsettled] of [
    [54_321, 54_321],
    [7, 54_321],
    [99_999, 7],
  ] as const) {
    const before = await bytesIn(blobs)
    // One that was written right before its backup is read, and listed anew, by the next one too.
    tree.set(numbered(unsettled), 3)
    tree.set(numbered(number), 2)
    last = (await backUp(tree, last)).manifest
    const added = (await bytesIn(blobs)) - before
    assert.ok(added <= 128 * 1024, `one changed: ${added} bytes`)
    assert.equal((await last.find(numbered(number)))?.mtimeNs, 2n)
    assert.equal((await second.find(numbered(number)))?.mtimeNs, 1n)
  }
})

it('a small manifest has no part, and its store stays what programs of format 1 read', async (t) => {
  const { blobs, backUp } = await createBackups(temporaryFolder(t), null)
  const { manifest } = await backUp(treeWith(500))
  const { manifest: second } = await backUp(treeWith(501), manifest)
  assert.deepEqual([second.parts, second.meta.version, await partsIn(blobs)], [[], 1, []])
  assert.equal(JSON.parse(Buffer.from(await blobs.get(FORMAT_BLOB)).toString()).version, 1)
})

it('the chunks of a manifest of format 1 become a part with the next backup, as they stand', async (t) => {
  const { blobs, backUp } = await createBackups(temporaryFolder(t), null, SMALL)
  const tree = treeWith(600)
  const cutAsBefore = { chunkBytes: 4000, ownBytes: Number.POSITIVE_INFINITY }
  const { manifest: old } = await backUp(tree, undefined, cutAsBefore)
  assert.deepEqual([old.meta.version, await partsIn(blobs)], [1, []])
  const { manifest } = await backUp(tree, old)
  assert.deepEqual([manifest.meta.version, (await partsIn(blobs)).length], [2, 1])
  assert.deepEqual(
    manifest.places.map(({ first, crc }) => [first, crc]),
    old.places.map(({ first, crc }) => [first, crc]),
  )
  for (const one of [old, manifest]) assert.deepEqual(await treeOf(one), sorted(tree))
})

it('`format` says 2 before the first part is there', async (t) => {
  const { blobs, backUp } = await createBackups(temporaryFolder(t), null, SMALL)
  const { create } = blobs
  const versions: number[] = []
  blobs.create = async (name) => {
    if (name.startsWith('parts/'))
      versions.push(JSON.parse(Buffer.from(await blobs.get(FORMAT_BLOB)).toString()).version)
    return await create(name)
  }
  const { manifest } = await backUp(treeWith(500))
  assert.deepEqual([versions, manifest.meta.version, manifest.parts.length], [[2], 2, 1])
})

for (const key of [null, randomBytes(32)]) {
  it(`whatever changes and is deleted, every manifest is what it was, and little is kept for nothing (${key ? 'encrypted' : 'in the clear'})`, async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 5, maxLength: 16 }), (changes) => live(t, key, changes)),
      { numRuns: 4 },
    )
  })
}

const number = fc.nat({ max: 800 })
const change = fc.record({
  set: fc.oneof(fc.array(number, { maxLength: 5 }), fc.tuple(number, number).map(between)),
  removed: fc.oneof(
    { weight: 4, arbitrary: fc.array(number, { maxLength: 3 }) },
    fc.tuple(number, number).map(between),
  ),
  /** Which of the backups is deleted after this one, if it is there. */
  deleted: fc.nat({ max: 12 }),
})
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

function between([a, b]: [number, number]): number[] {
  return Array.from({ length: Math.abs(a - b) }, (_, index) => Math.min(a, b) + index)
}

async function live(t: TestContext, key: Buffer | null, changes: readonly Change[]): Promise<void> {
  const { blobs, backUp } = await createBackups(temporaryFolder(t), key, SMALL)
  const tree = treeWith(600)
  const kept: { manifest: Manifest; tree: [string, number][] }[] = []
  let version = 1
  let last: Manifest | undefined
  for (const { set, removed, deleted } of changes) {
    version++
    for (const one of set) tree.set(numbered(one), version)
    for (const one of removed) tree.delete(numbered(one))
    const before: Manifest | undefined = last
    last = (await backUp(tree, last)).manifest
    kept.push({ manifest: last, tree: sorted(tree) })
    const gone = kept[deleted]
    if (gone && gone.manifest !== last) {
      await blobs.delete(`manifests/${SERVER}/${gone.manifest.meta.backupId}`)
      kept.splice(deleted, 1)
      await sweep(blobs, kept)
    }
    const earlier = last.parts.filter(({ id }) => before?.parts.some((part) => part.id === id))
    const held = earlier.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    const needed = before?.places.reduce((sum, { storedLength }) => sum + storedLength, 0) ?? 0
    assert.ok(held <= 2 * needed, `${held} bytes are held for ${needed}`)
  }
  for (const { manifest, tree: expected } of kept) assert.deepEqual(await treeOf(manifest), expected)
}

/** As a reclaim does. */
async function sweep(blobs: BlobStore, kept: readonly { manifest: Manifest }[]): Promise<void> {
  const named = new Set(kept.flatMap(({ manifest }) => manifest.parts.map(({ id }) => partBlob(SERVER, id))))
  for (const name of await partsIn(blobs)) if (!named.has(name)) await blobs.delete(name)
}

it('of a part of which little is needed, the rest is given back after some backups', async (t) => {
  const { blobs, backUp } = await createBackups(temporaryFolder(t), null, SMALL)
  const tree = treeWith(600)
  let { manifest } = await backUp(tree)
  const [first = ''] = await partsIn(blobs)
  for (const at of between([0, 400])) tree.set(numbered(at), 2)
  for (let round = 0; round < 2; round++) manifest = (await backUp(tree, manifest)).manifest
  assert.ok(manifest.parts.every(({ id }) => partBlob(SERVER, id) !== first))
  assert.deepEqual(await treeOf(manifest), sorted(tree))
})

for (const key of [null, randomBytes(32)])
  it(`a damaged chunk is damage of every backup that names it, until the next one has written it anew (${key ? 'encrypted' : 'in the clear'})`, async (t) => {
    const folder = temporaryFolder(t)
    const { blobs, backUp, open } = await createBackups(folder, key, SMALL)
    const tree = treeWith(600)
    const { manifest: first } = await backUp(tree)
    const expected = sorted(tree)
    tree.set(numbered(5), 2)
    const { manifest: second } = await backUp(tree, first)
    const [part = ''] = await partsIn(blobs)
    const hurt = second.places[20]
    assert.ok(hurt?.part !== undefined)
    flip(folder, part, hurt.offset + 30)
    for (const manifest of [first, second])
      await assert.rejects(treeOf(await open(manifest.meta.backupId)), { code: 'damage', blob: part })
    const { manifest: third } = await backUp(tree, await open(second.meta.backupId))
    assert.deepEqual(await treeOf(third), sorted(tree))
    assert.deepEqual(await treeOf(await open(second.meta.backupId)), sorted(tree))
    assert.deepEqual(await treeOf(await open(first.meta.backupId)), expected)
    // It is found there for the next one too, and named where it is sound.
    const { manifest: fourth, taken } = await backUp(tree, await open(first.meta.backupId))
    assert.deepEqual([await treeOf(fourth), taken > 0.9], [sorted(tree), true])
  })

it('a byte that is flipped anywhere in a part is found', async (t) => {
  const folder = temporaryFolder(t)
  const { blobs, sealer, backUp } = await createBackups(folder, null, SMALL)
  await backUp(treeWith(200))
  const [part = ''] = await partsIn(blobs)
  const whole = readFileSync(join(folder, part))
  await checkPart(blobs, sealer, part)
  for (let at = 0; at < whole.length; at += 97) {
    flip(folder, part, at)
    await assert.rejects(checkPart(blobs, sealer, part), { code: 'damage', blob: part }, `at ${at}`)
    writeFileSync(join(folder, part), whole)
  }
  await assert.rejects(checkPart(blobs, createSealer(randomBytes(32), 'sha-256'), part), { code: 'damage' })
})

it('a manifest that is deleted while it is read is not there; one whose part is gone is damaged', async (t) => {
  const { blobs, backUp, open } = await createBackups(temporaryFolder(t), null, SMALL)
  const { manifest } = await backUp(treeWith(600))
  const [part = ''] = await partsIn(blobs)
  await blobs.delete(part)
  await assert.rejects(treeOf(manifest), { code: 'damage', blob: part })
  const reading = await open(manifest.meta.backupId)
  await blobs.delete(`manifests/${SERVER}/${manifest.meta.backupId}`)
  await assert.rejects(treeOf(reading), { code: 'not_found' })
})
