// What is known to be damaged, kept in the store: a block that is counts as absent until it is stored anew or healed.
import { BlobMissing, type BlobStore } from '../../../blobs/store.ts'
import type { BlockIndex } from '../blocks/block-index.ts'
import { DAMAGE_BLOB, packBlob } from '../format/format.ts'

export const OUTSIDE_BLOCKS = 'is damaged outside of its blocks'

export interface DamagedBlock {
  id: Uint8Array
  /** Where it is damaged. */
  packId: string
}

export interface KnownDamage {
  /** The id of a block and the pack in which it is damaged. */
  blocks: [string, string][]
  /** Packs whose own table is damaged. */
  packs: string[]
}

interface Damaged {
  blobs: BlobStore
  index: BlockIndex
  damagedBlobs: Map<string, string>
}

/** A wrong list costs no data: a block taken for damaged is only stored again. So a list that cannot be read is none. */
export async function readDamage(blobs: BlobStore): Promise<KnownDamage> {
  try {
    return JSON.parse(Buffer.from(await blobs.get(DAMAGE_BLOB)).toString()) as KnownDamage
  } catch (error) {
    if (error instanceof BlobMissing || error instanceof SyntaxError) return { blocks: [], packs: [] }
    throw error
  }
}

export async function isKnownDamaged(blobs: BlobStore, packId: string): Promise<boolean> {
  const { blocks, packs } = await readDamage(blobs)
  return packs.includes(packId) || blocks.some(([, where]) => where === packId)
}

export async function addDamage(repository: Damaged, found: DamagedBlock[], packIds: string[]): Promise<void> {
  const known = await readDamage(repository.blobs)
  const { blobs, index, damagedBlobs } = repository
  const blocks = new Map(known.blocks.map((pair) => [pair.join(' '), pair]))
  for (const { id, packId } of found) {
    const block = index.findAny(id)
    if (block < 0 || index.place(block).packId !== packId) continue
    const pair: [string, string] = [Buffer.from(id).toString('hex'), packId]
    blocks.set(pair.join(' '), pair)
    index.markDamaged(block)
  }
  for (const packId of packIds) damagedBlobs.set(packBlob(packId), OUTSIDE_BLOCKS)
  await writeDamage(blobs, { blocks: [...blocks.values()], packs: [...new Set([...known.packs, ...packIds])] })
}

/** The pack is what was written again. */
export async function removeDamage(repository: Damaged, packId: string): Promise<void> {
  const known = await readDamage(repository.blobs)
  const { blobs, index, damagedBlobs } = repository
  const list: KnownDamage = {
    blocks: known.blocks.filter(([, where]) => where !== packId),
    packs: known.packs.filter((id) => id !== packId),
  }
  for (const [id, where] of known.blocks) {
    const block = where === packId ? index.findAny(Buffer.from(id, 'hex')) : -1
    if (block >= 0 && index.place(block).packId === packId) index.markSound(block)
  }
  damagedBlobs.delete(packBlob(packId))
  await writeDamage(blobs, list)
}

async function writeDamage(blobs: BlobStore, list: KnownDamage): Promise<void> {
  if (list.blocks.length + list.packs.length > 0) await blobs.put(DAMAGE_BLOB, Buffer.from(JSON.stringify(list)))
  else await blobs.delete(DAMAGE_BLOB)
}
