// An open store: its index in memory, its worker threads, and its known damage.
import { randomBytes } from 'node:crypto'
import { type BlobStoreAddress, openBlobStore } from '../../../blobs/open-store.ts'
import { BlobMissing, type BlobStore } from '../../../blobs/store.ts'
import { createSharedLock, type SharedLock } from '../../../kit/shared-lock.ts'
import { createTurns } from '../../../kit/turns.ts'
import { type BlockIndex, createBlockIndex } from '../blocks/block-index.ts'
import { createPrintCache, PRINT_KEY_BYTES, type PrintCache } from '../blocks/block-prints.ts'
import { fastestBlockHash } from '../blocks/block-speed.ts'
import { type BlockHash, DAMAGE_BLOB, Damage, lastSegment, packBlob } from '../format/format.ts'
import { createSealer, type Sealer } from '../format/seal.ts'
import { agreeOnKey } from '../format/store-format.ts'
import { createPool, type Pool } from '../workers/pool.ts'
import { createIndexWriter, listedPacks } from './index-blobs.ts'
import { readPackTable, type WrittenPack } from './packs.ts'

/**
 * So small an index gives way to that of a larger backup, which need not be copied then. It is done in one step, in which
 * nobody else finds the one or the other incomplete.
 */
const SUCCEEDED_AT_MOST = 16_384
/** Enough for the blocks of 60 GB. */
const PRINTS_BYTES = 32 * 1024 * 1024
const FILES_AT_ONCE = 1024

const OUTSIDE_BLOCKS = 'is damaged outside of its blocks'

export interface RepositoryConfig {
  blobs: BlobStoreAddress
  /** 32 bytes, or null for a store in the clear. */
  key: Uint8Array | null
  /** For a store that is made now; the fastest here unless it is given. */
  blockHash?: BlockHash | undefined
  threads?: number | undefined
  /** How far the worker threads stand back for others, 0 to 19. */
  nice?: number
  /** Of the files of one backup or restore, open at once. */
  filesAtOnce?: number | undefined
}

export interface DamagedBlock {
  id: Uint8Array
  /** Where it is damaged. */
  packId: string
}

export interface LatestBackup {
  backupId: string
  /** As long as the index is of this generation and has lost nothing more, every block of the backup is held. */
  generation: number
  losses: number
}

export interface Repository {
  readonly blobs: BlobStore
  readonly sealer: Sealer
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
  /** From now on every backup may count on the packs: they must be durable, and must not be taken away again. */
  publish(packs: Map<string, number>, blocks: BlockIndex): Promise<void>
  /**
   * Durable, so that a block once known to be damaged is not counted on after a restart. A block that has been stored
   * anew in another pack is not: it is well there.
   */
  recordDamage(found: DamagedBlock[], packIds?: string[]): Promise<void>
  /** Reads the indexes anew. Nobody else may be writing. */
  reload(): Promise<void>
  close(): Promise<void>
}

export async function openRepository(config: RepositoryConfig): Promise<Repository> {
  const blobs = await openBlobStore(config.blobs, { clear: true })
  const { blockHash } = await agreeOnKey(blobs, config.key, () => config.blockHash ?? fastestBlockHash())
  const sealer = createSealer(config.key, blockHash)
  const { key, nice = 0 } = config
  const printKey = randomBytes(PRINT_KEY_BYTES)
  const pool = createPool({ blobs: config.blobs, key, blockHash, printKey, nice }, config.threads)
  /** One after another: each reads the list, adds to it and writes it. */
  let recording = Promise.resolve()
  /** One after another as well: one may replace the index that another adds to. */
  let publishing = Promise.resolve()
  const repository = {
    blobs,
    sealer,
    pool,
    index: createBlockIndex(),
    generation: 0,
    writing: createSharedLock(),
    packs: new Map<string, number>(),
    damagedBlobs: new Map<string, string>(),
    latest: new Map<string, LatestBackup>(),
    prints: createPrintCache(PRINTS_BYTES),
    filesAtOnce: config.filesAtOnce ?? FILES_AT_ONCE,
    publish(packs: Map<string, number>, blocks: BlockIndex) {
      const published = publishing.then(() => publish(repository, packs, blocks))
      publishing = published.catch(() => {})
      return published
    },
    recordDamage(found: DamagedBlock[], packIds: string[] = []) {
      const recorded = recording.then(() => recordDamage(repository, found, packIds))
      recording = recorded.catch(() => {})
      return recorded
    },
    async reload() {
      Object.assign(repository, await load(blobs, sealer), { generation: repository.generation + 1 })
    },
    close: () => pool.close(),
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

/**
 * Packs that no index lists are whole, since a pack becomes visible in one step: a crash came before their index, or
 * the index is damaged. They are taken in, and a reclaim takes away what nobody needs of them.
 */
async function load(blobs: BlobStore, sealer: Sealer) {
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
  for await (const pack of listedPacks(blobs, sealer, note)) if (there.has(pack.packId)) take(pack)
  const damagedIndexes = [...damagedBlobs.keys()]
  const orphans = createIndexWriter(blobs, sealer)
  for (const packId of there.keys()) {
    if (packs.has(packId)) continue
    const pack = await orDamage(damagedBlobs, () => readPackTable(blobs, packId))
    if (!pack) continue
    take(pack)
    await orphans.add(pack)
  }
  await orphans.finish()
  // What they listed is listed again by now, unless a pack's own table is damaged too.
  if (packs.size === there.size) for (const name of damagedIndexes) await blobs.delete(name)
  for (const packId of damage.packs) if (there.has(packId)) damagedBlobs.set(packBlob(packId), OUTSIDE_BLOCKS)
  return { index, packs, damagedBlobs }
}

function addPack(index: BlockIndex, { packId, table }: WrittenPack, damage: KnownDamage): void {
  index.addTable(packId, table)
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

interface KnownDamage {
  /** The id of a block and the pack in which it is damaged. */
  blocks: [string, string][]
  /** Packs whose own table is damaged. */
  packs: string[]
}

/** A wrong list costs no data: a block taken for damaged is only stored again. So a list that cannot be read is none. */
async function readDamage(blobs: BlobStore): Promise<KnownDamage> {
  try {
    return JSON.parse(Buffer.from(await blobs.get(DAMAGE_BLOB)).toString()) as KnownDamage
  } catch (error) {
    if (error instanceof BlobMissing || error instanceof SyntaxError) return { blocks: [], packs: [] }
    throw error
  }
}

async function recordDamage(
  repository: Pick<Repository, 'blobs' | 'index' | 'damagedBlobs'>,
  found: DamagedBlock[],
  packIds: string[],
): Promise<void> {
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
  const list: KnownDamage = { blocks: [...blocks.values()], packs: [...new Set([...known.packs, ...packIds])] }
  await blobs.put(DAMAGE_BLOB, Buffer.from(JSON.stringify(list)))
}
