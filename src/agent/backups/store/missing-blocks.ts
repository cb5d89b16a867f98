// Whether a store has every block that its manifests name, by the names and sizes of packs alone: none of them is read.
import type { BlobStore } from '../../../blobs/store.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { createBlockIndex } from '../blocks/block-index.ts'
import { visitIds } from '../format/entries.ts'
import { lastSegment, packBlob } from '../format/format.ts'
import type { Manifest } from '../format/manifest.ts'
import { wholeWhere } from '../format/patched.ts'
import { readListedIndex } from './index-blobs.ts'
import type { WrittenPack } from './packs.ts'
import type { Repository } from './repository.ts'

/** Where the block is whose id stands in `bytes`, and why it cannot be read there. Undefined where nothing is known against it. */
export type FindFault = (bytes: Uint8Array, idAt: number) => string | undefined

interface Missing {
  count: number
  /** The fault of the first. */
  first: string
}

/**
 * Reads all of a manifest, but for what it shares with those before, and says which of its blocks are missing; null where none is.
 * Throws Damage where it cannot be read.
 */
export function createBlockCheck(findFault: FindFault): (manifest: Manifest) => Promise<string | null> {
  /** What many share is checked once. */
  const seen = new Set<string>()
  /** Of these chunks, those that name blocks which are missing. */
  const incomplete = new Map<string, Missing>()

  return async (manifest) => {
    const missing: Missing = { count: 0, first: '' }
    for await (const { raw, sharedKey } of manifest.rawChunks(seen)) {
      const inChunk = missingIn(raw, findFault)
      if (sharedKey === undefined) add(missing, inChunk)
      else if (inChunk.count > 0) incomplete.set(sharedKey, inChunk)
    }
    if (incomplete.size > 0) for (const key of manifest.sharedKeys()) add(missing, incomplete.get(key))
    return missing.count === 0 ? null : `missing blocks: ${missing.count}, the first ${missing.first}`
  }
}

function missingIn(chunk: Buffer, findFault: FindFault): Missing {
  const missing: Missing = { count: 0, first: '' }
  const check = (idAt: number) => {
    const fault = findFault(chunk, idAt)
    if (fault !== undefined) add(missing, { count: 1, first: fault })
  }
  const holds = (bytes: Uint8Array, idAt: number) => findFault(bytes, idAt) === undefined
  visitIds(chunk, check, wholeWhere(holds, chunk))
  return missing
}

function add(to: Missing, more: Missing | undefined): void {
  if (!more) return
  if (to.count === 0) to.first = more.first
  to.count += more.count
}

/** Of a store that nobody has opened: what its indexes list, compared with the packs that it lists. */
export async function faultsByIndexes(
  { blobs, sealer }: { blobs: BlobStore } & Pick<Repository, 'sealer'>,
  atOnce: number,
): Promise<FindFault> {
  const sizes = await packSizes(blobs)
  const unlisted = new Set(sizes.keys())
  /** Two, since a block may be in several packs: one of them will do. Together they are as large as that of an open store. */
  const [whole, lost] = [createBlockIndex(), createBlockIndex()]
  const seen = new Set<string>()
  const faults = new Map<string, string>()
  const indexes = await Array.fromAsync(blobs.list('index/'))
  await forEachAtOnce(indexes, atOnce, async ({ name }) => {
    for (const pack of await readListedIndex(blobs, sealer, name, () => {})) {
      const { packId, table } = pack
      if (seen.has(packId)) continue
      seen.add(packId)
      unlisted.delete(packId)
      const fault = faultOfPack(sizes, pack)
      if (fault !== undefined) faults.set(packId, fault)
      const index = fault === undefined ? whole : lost
      index.addTable(packId, table)
    }
  })
  const inNone = unlisted.size === 0 ? 'in no index' : `in no index, nor are packs: ${unlisted.size}`
  return (bytes, idAt) => {
    if (whole.findAny(bytes, idAt) >= 0) return undefined
    const block = lost.findAny(bytes, idAt)
    if (block < 0) return inNone
    const { packId } = lost.place(block)
    return inPack(packId, faults.get(packId))
  }
}

/** Packs in doubt must have been asked for: a block that may be in one of them counts as there. */
export async function faultsInOpenStore(repository: Repository): Promise<FindFault> {
  const faults = new Map<string, string>()
  {
    // Until they are compared: a reclaim deletes packs before it forgets them.
    using _shared = await repository.writing.share()
    const sizes = await packSizes(repository.blobs)
    for (const [packId, sizeBytes] of repository.packs) {
      const fault = faultOfPack(sizes, { packId, sizeBytes })
      if (fault !== undefined) faults.set(packId, fault)
    }
  }
  return (bytes, idAt) => {
    const { index, doubtful } = repository
    const block = index.findAny(bytes, idAt)
    if (block < 0) return doubtful.size > 0 ? undefined : 'in no pack'
    if (faults.size === 0) return undefined
    const { packId } = index.place(block)
    const fault = faults.get(packId)
    return fault === undefined ? undefined : inPack(packId, fault)
  }
}

const inPack = (packId: string, fault = 'is not there') => `in ${packBlob(packId)}, which ${fault}`

/** By the ids of packs. Null: a note says that an off-site store has it, which is not asked. */
async function packSizes(blobs: Pick<BlobStore, 'list'>): Promise<Map<string, number | null>> {
  const sizes = new Map<string, number | null>()
  for await (const { name } of blobs.list('away/packs/')) sizes.set(lastSegment(name), null)
  for await (const { name, sizeBytes } of blobs.list('packs/')) sizes.set(lastSegment(name), sizeBytes)
  return sizes
}

function faultOfPack(
  sizes: ReadonlyMap<string, number | null>,
  { packId, sizeBytes }: Pick<WrittenPack, 'packId' | 'sizeBytes'>,
): string | undefined {
  const there = sizes.get(packId)
  if (there === undefined) return 'is not there'
  return there === null || there === sizeBytes ? undefined : `has ${there} bytes instead of ${sizeBytes}`
}
