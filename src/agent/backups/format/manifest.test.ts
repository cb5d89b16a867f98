import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import fc from 'fast-check'
import { openLocalStore } from '../../../blobs/local.ts'
import { temporaryFolder } from '../backups.testing.ts'
import { type Entry, NO_CONTENT, orderKey, type StoredEntry } from './entries.ts'
import { createManifest, type Manifest, type ManifestMeta, openManifest } from './manifest.ts'
import { createSealer } from './seal.ts'

const SERVER = 'srv_a'

function entryAt(path: string, version: number): Entry {
  return {
    ...{
      path,
      kind: 'file',
      mode: 0o644,
      uid: 1,
      gid: 2,
      mtimeNs: BigInt(version),
      ctimeNs: 3n,
      inode: 4n,
      sizeBytes: 5,
    },
    ...{ isSettled: true, target: null, hardLink: null, content: NO_CONTENT },
  }
}

const named = (number: number) => `/${String(number).padStart(6, '0')} ${'long name '.repeat(8)}`

/** One backup after another of so many entries, each by the path and version of its entries. */
async function createBackups(folder: string, key: Buffer | null) {
  const blobs = await openLocalStore(folder, { clear: true })
  const sealer = createSealer(key, 'sha-256')
  let count = 0
  return async (tree: Map<string, number>, previous?: Manifest): Promise<{ manifest: Manifest; taken: number }> => {
    const backupId = `bkp_${count++}`
    const known = new Map<string, StoredEntry>()
    const before = new Set<string>()
    for await (const entry of previous?.entries() ?? []) {
      known.set(entry.path, entry)
      before.add(entry.chunk.place.digest)
    }
    const writer = await createManifest(blobs, sealer, { serverId: SERVER, backupId })
    for (const path of [...tree.keys()].sort((a, b) => (orderKey(a) < orderKey(b) ? -1 : 1))) {
      const version = tree.get(path) ?? 0
      const kept = known.get(path)
      await (kept?.mtimeNs === BigInt(version) ? writer.addAsItStands(kept) : writer.add(entryAt(path, version)))
    }
    await writer.finish({ serverId: SERVER, backupId } as ManifestMeta)
    const manifest = await openManifest(blobs, sealer, { serverId: SERVER, backupId })
    const chunks = new Set<string>()
    for await (const { chunk } of manifest.entries()) chunks.add(chunk.place.digest)
    return { manifest, taken: [...chunks].filter((digest) => before.has(digest)).length / chunks.size }
  }
}

async function treeOf(manifest: Manifest): Promise<[string, number][]> {
  const entries = await Array.fromAsync(manifest.entries())
  return entries.map(({ path, mtimeNs }) => [path, Number(mtimeNs)])
}

for (const key of [null, randomBytes(32)]) {
  it(`chunks that are taken as they stand hold what they held (${key ? 'encrypted' : 'in the clear'})`, async (t) => {
    const backUp = await createBackups(temporaryFolder(t), key)
    const numbers = fc.nat({ max: 12_000 })
    const change = fc.record({
      changed: fc.array(numbers, { maxLength: 4 }),
      deleted: fc.oneof(fc.array(numbers, { maxLength: 4 }), fc.constant([...Array(3000).keys()])),
      added: fc.array(numbers, { maxLength: 4 }),
    })
    const tree = new Map(Array.from({ length: 6000 }, (_, number) => [named(number * 2), 1]))
    let { manifest } = await backUp(tree)
    let version = 1
    await fc.assert(
      fc.asyncProperty(change, async ({ changed, deleted, added }) => {
        version++
        for (const number of deleted) tree.delete(named(number))
        for (const number of changed) if (tree.has(named(number))) tree.set(named(number), version)
        for (const number of added) tree.set(named(number), version)
        manifest = (await backUp(tree, manifest)).manifest
        assert.deepEqual(
          await treeOf(manifest),
          [...tree].sort(([a], [b]) => (orderKey(a) < orderKey(b) ? -1 : 1)),
        )
        const some = named(2 * (version % 6000))
        assert.equal((await manifest.find(some))?.path, tree.has(some) ? some : undefined)
      }),
      { numRuns: 10 },
    )
  })
}

it('of a tree that has hardly changed, nearly all chunks are taken as they stand; small ones do not become many', async (t) => {
  const backUp = await createBackups(temporaryFolder(t), null)
  const tree = new Map(Array.from({ length: 12_000 }, (_, number) => [named(number * 2), 1]))
  let last = await backUp(tree)
  const chunks = await chunkCount(last.manifest)
  last = await backUp(tree, last.manifest)
  assert.equal(last.taken, 1)
  tree.set(named(8_001), 1)
  last = await backUp(tree, last.manifest)
  assert.ok(chunks > 4 && last.taken === (chunks - 1) / chunks, `${last.taken} of ${chunks} taken`)
  for (let round = 0; round < 10; round++) {
    tree.set(named(900_000 + round), 1)
    last = await backUp(tree, last.manifest)
  }
  assert.ok((await chunkCount(last.manifest)) <= chunks + 1)
})

const chunkCount = async (manifest: Manifest) => (await Array.fromAsync(manifest.chunks())).length
