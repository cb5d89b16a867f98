// An open store: its index in memory, its worker threads, and its known damage.
import { randomBytes } from 'node:crypto'
import { asCopy, type LayeredStore, openLayeredStore } from '../../../blobs/layered.ts'
import { type BlobStoreAddress, openBlobStore, openWhenUsed } from '../../../blobs/open-store.ts'
import type { BlobStore } from '../../../blobs/store.ts'
import { createMutex, type Mutex } from '../../../kit/waiting/mutex.ts'
import { createSharedLock, type SharedLock } from '../../../kit/waiting/shared-lock.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { type BlockIndex, createBlockIndex } from '../blocks/block-index.ts'
import { createPrintCache, type PrintCache } from '../blocks/block-prints.ts'
import { fastestBlockHash } from '../blocks/block-speed.ts'
import type { Entry } from '../format/entries.ts'
import { type BlockHash, Damage, lastSegment, packBlob } from '../format/format.ts'
import { GMAC_KEY_BYTES } from '../format/gmac.ts'
import { MANIFEST_SIZES, type ManifestSizes } from '../format/manifest-writer.ts'
import { createSealer, type Sealer } from '../format/seal.ts'
import type { Span } from '../format/spans.ts'
import { agreeOnKey } from '../format/store-format.ts'
import { createPool, type Pool } from '../workers/pool.ts'
import { type CopyDamage, createCopyDamage } from './copy-damage.ts'
import {
  addDamage,
  type DamagedBlock,
  type KnownDamage,
  OUTSIDE_BLOCKS,
  readDamage,
  removeDamage,
} from './damage-list.ts'
import { createIndexWriter, listedPacks } from './index-blobs.ts'
import { createPackFetches, type PackFetches } from './pack-fetch.ts'
import { readPackTable, type WrittenPack } from './packs.ts'
import { openPrintFile } from './print-file.ts'

/**
 * So small an index gives way to that of a larger backup, which need not be copied then. It is done in one step, in which
 * nobody else finds the one or the other incomplete.
 */
const SUCCEEDED_AT_MOST = 16_384
/** Enough for the blocks of 60 GB. */
const PRINTS_BYTES = 32 * 1024 * 1024
const FILES_AT_ONCE = 1024

export interface RepositoryConfig {
  blobs: BlobStoreAddress
  /** Where prints are kept for the next process; nowhere by default. */
  printFile?: string | undefined
  /** Opens the copy of the store, when it is first needed; there is none by default. */
  offsite?: (() => Promise<BlobStore>) | null | undefined
  /** 32 bytes, or null for a store in the clear. */
  key: Uint8Array | null
  /** For a store that is made now; the fastest here unless it is given. */
  blockHash?: BlockHash | undefined
  threads?: number | undefined
  /** How far the worker threads stand back for others, 0 to 19. */
  nice?: number
  /** Of the files of one backup or restore, open at once. */
  filesAtOnce?: number | undefined
  manifestSizes?: ManifestSizes | undefined
  onHealed?: ((healed: Healed) => void) | undefined
}

/** A blob that is on the disk again, from the copy. */
export interface Healed {
  blob: string
  /** Whose work has met the damage, where it was somebody's. */
  serverId: string | null
}

export interface LatestBackup {
  backupId: string
  /** As long as the index is of this generation and has lost nothing more, every block of the backup is held. */
  generation: number
  losses: number
  /** It lists everything but what its patterns say. */
  isAll: boolean
  /** The top of the tree, just before its names were read. */
  top: Entry
}

export interface Repository {
  /** The store: what is on the disk, and packs that a note says are in the copy. */
  readonly blobs: LayeredStore
  /** The copy; null where none is configured, though packs may have left for one. */
  readonly offsite: BlobStore | null
  /** Whether the pack is only in the copy. */
  isAway(packId: string): boolean
  /** For reading from the copy. */
  readonly fetches: PackFetches
  /**
   * Packs that an index or a note names, and of which it is not known whether the copy has them: nothing counts on them,
   * and none may be taken from the copy.
   */
  readonly doubtful: Set<string>
  /** Packs that neither the disk nor the copy has, as the copy has said since the start. */
  readonly gone: Set<string>
  /** Backups that were deleted since the start, by the names of their manifests: the copy may have them for a while. */
  readonly deleted: Set<string>
  /** One thing is healed at a time: a whole pack of it is in memory. */
  readonly healing: Mutex
  /** Packs whose turn is to come. */
  readonly toHeal: Set<string>
  onHealed(healed: Healed): void
  /** What is known to be damaged in the copy alone. */
  readonly copyDamage: CopyDamage
  readonly sealer: Sealer
  /** Of the spans in packs that are made now. It is no secret. */
  readonly spanKey: Uint8Array
  readonly pool: Pool
  readonly index: BlockIndex
  /** Another one whenever the index is read anew. */
  readonly generation: number
  /** Shared by backups, held alone by a reclaim: no block that a running backup counts on is ever taken away. */
  readonly writing: SharedLock
  /** Every pack there is, with its size. */
  readonly packs: Map<string, number>
  /** Blobs other than blocks that were found damaged, with what is wrong. */
  readonly damagedBlobs: Map<string, string>
  /** By server: the backup that was made last by this process, and what of the index it has seen. */
  readonly latest: Map<string, LatestBackup>
  readonly prints: PrintCache
  /** How many files a backup or a restore holds open at once, at most. */
  readonly filesAtOnce: number
  /** Of those that are made now. */
  readonly manifestSizes: ManifestSizes
  /** From now on every backup may count on the packs: they must be durable, and must not be taken away again. */
  publish(packs: Map<string, number>, blocks: BlockIndex): Promise<void>
  /**
   * Durable, so that a block once known to be damaged is not counted on after a restart. A block that has been stored
   * anew in another pack is not: it is well there.
   */
  recordDamage(found: DamagedBlock[], packIds?: string[]): Promise<void>
  /** The pack is sound on the disk again, durably: nothing of it counts as damaged any more. */
  recordHealed(packId: string): Promise<void>
  /** A pack that the copy turned out to have. From now on every backup may count on it. */
  adopt(pack: WrittenPack): Promise<void>
  /** Reads the indexes anew. Nobody else may be writing. */
  reload(): Promise<void>
  close(): Promise<void>
}

export async function openRepository(config: RepositoryConfig): Promise<Repository> {
  const offsite = config.offsite ? asCopy(openWhenUsed(config.offsite)) : null
  const blobs = await openLayeredStore(await openBlobStore(config.blobs, { clear: true }), offsite ?? NO_COPY)
  const { blockHash } = await agreeOnKey(blobs, config.key, () => config.blockHash ?? fastestBlockHash())
  const sealer = createSealer(config.key, blockHash)
  const { key, nice = 0 } = config
  const keptPrints = config.printFile === undefined ? undefined : openPrintFile(config.printFile)
  const printKey = keptPrints?.key ?? randomBytes(GMAC_KEY_BYTES)
  const spanKey = randomBytes(GMAC_KEY_BYTES)
  const pool = createPool({ blobs: config.blobs, key, blockHash, printKey, spanKey, nice }, config.threads)
  /** One after another: each reads the list, adds to it and writes it. */
  let recording = Promise.resolve()
  /** One after another as well: one may replace the index that another adds to. */
  let publishing = Promise.resolve()
  const repository = {
    blobs,
    offsite,
    isAway: (packId: string) => blobs.isAway(packBlob(packId)),
    fetches: createPackFetches(
      offsite ?? NO_COPY,
      (packId): Span | undefined => repository.index.packNotes.get(packId)?.spans,
    ),
    doubtful: new Set<string>(),
    gone: new Set<string>(),
    deleted: new Set<string>(),
    healing: createMutex(),
    toHeal: new Set<string>(),
    onHealed: config.onHealed ?? (() => {}),
    copyDamage: createCopyDamage(blobs.local),
    sealer,
    spanKey,
    pool,
    index: createBlockIndex(),
    generation: 0,
    writing: createSharedLock(),
    packs: new Map<string, number>(),
    damagedBlobs: new Map<string, string>(),
    latest: new Map<string, LatestBackup>(),
    prints: createPrintCache(PRINTS_BYTES, keptPrints),
    filesAtOnce: config.filesAtOnce ?? FILES_AT_ONCE,
    manifestSizes: config.manifestSizes ?? MANIFEST_SIZES,
    publish(packs: Map<string, number>, blocks: BlockIndex) {
      const published = publishing.then(() => publish(repository, packs, blocks))
      publishing = published.catch(() => {})
      return published
    },
    recordDamage(found: DamagedBlock[], packIds: string[] = []) {
      const recorded = recording.then(() => addDamage(repository, found, packIds))
      recording = recorded.catch(() => {})
      return recorded
    },
    recordHealed(packId: string) {
      const recorded = recording.then(() => removeDamage(repository, packId))
      recording = recorded.catch(() => {})
      return recorded
    },
    adopt({ packId, sizeBytes, table }: WrittenPack) {
      const adopted = publishing.then(() => {
        repository.index.addPack(packId, table)
        repository.packs.set(packId, sizeBytes)
        repository.doubtful.delete(packId)
      })
      publishing = adopted.catch(() => {})
      return adopted
    },
    async reload() {
      const { named, ...loaded } = await load(blobs, sealer)
      const doubtful = new Set(offsite ? named.filter((packId) => !repository.gone.has(packId)) : [])
      Object.assign(repository, loaded, { doubtful, generation: repository.generation + 1 })
    },
    async close() {
      try {
        await repository.prints.keep()
      } finally {
        await pool.close()
      }
    },
  }
  await repository.reload()
  return repository
}

async function publish(
  repository: { index: BlockIndex; packs: Map<string, number> },
  packs: Map<string, number>,
  blocks: BlockIndex,
): Promise<void> {
  const { index } = repository
  if (index.blockCount <= SUCCEEDED_AT_MOST && blocks.blockCount > index.blockCount) {
    blocks.succeed(index)
    repository.index = blocks
  } else {
    const turn = createTurns('the backup store')
    for (const _ of index.addAll(blocks)) if (turn.due()) await turn.take()
  }
  for (const [packId, sizeBytes] of packs) repository.packs.set(packId, sizeBytes)
}

/** What is read from where nothing is. */
const NO_COPY = asCopy(openWhenUsed(() => Promise.reject(new Error('GAMEKEEPER_OFFSITE is not set'))))

/**
 * Packs that no index lists are whole, since a pack becomes visible in one step: a crash came before their index, or
 * the index is damaged. They are taken in, and a reclaim takes away what nobody needs of them. `named` are those that are
 * not taken in: an index lists one that is neither here nor noted, or a note names one that no index lists.
 */
async function load(blobs: LayeredStore, sealer: Sealer) {
  const index = createBlockIndex()
  const packs = new Map<string, number>()
  const damagedBlobs = new Map<string, string>()
  const there = new Map<string, number>()
  for await (const { name, sizeBytes } of blobs.list('packs/')) there.set(lastSegment(name), sizeBytes)
  const damage = await readDamage(blobs)
  const take = (pack: WrittenPack) => {
    addPack(index, pack, damage)
    packs.set(pack.packId, pack.sizeBytes)
  }
  const note = ({ blob, message }: Damage) => void damagedBlobs.set(blob, message)
  const named: string[] = []
  for await (const pack of listedPacks(blobs, sealer, note)) {
    if (there.has(pack.packId)) take(pack)
    else named.push(pack.packId)
  }
  const damagedIndexes = [...damagedBlobs.keys()]
  const orphans = createIndexWriter(blobs, sealer)
  for (const packId of there.keys()) {
    if (packs.has(packId)) continue
    if (blobs.isAway(packBlob(packId))) {
      named.push(packId)
      continue
    }
    const pack = await orDamage(damagedBlobs, () => readPackTable(blobs, packId))
    if (!pack) continue
    take(pack)
    await orphans.add(pack)
  }
  await orphans.finish()
  // What they listed is listed again by now, unless a pack's own table is damaged too.
  if (packs.size === there.size) for (const name of damagedIndexes) await blobs.delete(name)
  for (const packId of damage.packs) if (there.has(packId)) damagedBlobs.set(packBlob(packId), OUTSIDE_BLOCKS)
  return { index, packs, damagedBlobs, named }
}

function addPack(index: BlockIndex, { packId, table }: WrittenPack, damage: KnownDamage): void {
  index.addPack(packId, table)
  for (const [id, where] of damage.blocks) {
    const block = where === packId ? index.findAny(Buffer.from(id, 'hex')) : -1
    if (block >= 0 && index.place(block).packId === packId) index.markDamaged(block)
  }
}

async function orDamage<T>(damagedBlobs: Map<string, string>, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    damagedBlobs.set(error.blob, error.message)
    return undefined
  }
}
