// The numbers and names of the store's format, versions 1 to 3. docs/backup-format.md is its specification: what changes
// here changes there.
import { hash } from 'node:crypto'

export const FORMAT_VERSION = 1
/** Of a store, and of a manifest, with parts. Programs that know only version 1 refuse the store. */
export const PARTS_VERSION = 2
/** With blocks that are listed as patched too. */
export const PATCHES_VERSION = 3
export const BLOCK_BYTES = 64 * 1024
/** What games write at a time. */
export const SECTOR_BYTES = 4096
/** Small blocks are compressed together up to this size. */
export const FRAME_BYTES = 128 * 1024
export const ID_BYTES = 32
export const PACK_MAGIC = 'GKPACK01'
export const INDEX_MAGIC = 'GKINDX01'
export const MANIFEST_MAGIC = 'GKMANI01'
export const PART_MAGIC = 'GKPART01'
export const BUNDLE_MAGIC = 'GKBUND01'
export const MAGIC_BYTES = 8

export const FORMAT_BLOB = 'format'
export const DAMAGE_BLOB = 'state/damage'
export const COPY_DAMAGE_BLOB = 'state/copies'
export const SCRUB_BLOB = 'state/scrub'

export const packBlob = (packId: string) => `packs/${packId.slice(0, 2)}/${packId}`
export const indexBlob = (indexId: string) => `index/${indexId}`
export const manifestBlob = (serverId: string, backupId: string) => `manifests/${serverId}/${backupId}`
export const bundleBlob = (bundleId: string) => `bundles/${bundleId}`
export const partBlob = (serverId: string, partId: string) => `parts/${serverId}/${partId}`

/** The name of a blob's last segment: its pack, index or backup id. */
export const lastSegment = (name: string) => name.slice(name.lastIndexOf('/') + 1)

/** What names blocks. A store keeps the one it was made with. */
export const BLOCK_HASHES = { 'blake2b-256': 'blake2b512', 'sha-256': 'sha256' } as const
export type BlockHash = keyof typeof BLOCK_HASHES

export function isBlockHash(value: unknown): value is BlockHash {
  return typeof value === 'string' && Object.hasOwn(BLOCK_HASHES, value)
}

/**
 * What it returns has one character a byte, of which the first ID_BYTES count. Text costs a third of a Buffer, which is
 * memory of its own and has to be collected.
 */
export function createHasher(blockHash: BlockHash): (bytes: Uint8Array) => string {
  // Looked up once: by a name that came with a message, each look would take longer than the rest of this.
  const algorithm = BLOCK_HASHES[blockHash]
  return (bytes) => hash(algorithm, bytes, 'latin1')
}

const hashOf = createHasher('blake2b-256')

/** The first 256 bits of BLAKE2b-512. */
export const digest = (bytes: Uint8Array) => Buffer.from(hashOf(bytes).slice(0, ID_BYTES), 'latin1')

/** What is on disk is not what was written. Names the blob, and the block where it is one. */
export class Damage extends Error {
  readonly code = 'damage'
  readonly blob: string
  readonly blockId: string | undefined

  constructor(blob: string, what: string, blockId?: string) {
    super(`${blob}: ${what}`)
    this.name = 'Damage'
    this.blob = blob
    this.blockId = blockId
  }
}
