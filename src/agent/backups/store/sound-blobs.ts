// Whole blobs in memory, checked to the last byte: nothing else takes the place of a damaged one, here or in the off-site copy.
import type { BlobStore, ByteRange } from '../../../blobs/store.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { Damage, lastSegment } from '../format/format.ts'
import { openManifest } from '../format/manifest.ts'
import { decodeTable, type Frame } from '../format/pack-table.ts'
import { checkPart } from '../format/parts.ts'
import { faultOfUnnamed, isUnnamed } from '../format/unnamed.ts'
import { decodeJobs, NOT_WRITTEN } from '../workers/decode-jobs.ts'
import type { FetchedRange } from '../workers/worker-jobs.ts'
import { listedPacks, readIndex } from './index-blobs.ts'
import { readPackTable } from './packs.ts'
import type { Repository } from './repository.ts'

/**
 * A pack, an index, a part or a manifest as the disk has it; undefined where that is not what was written. Throws `BlobMissing`.
 * Whoever calls it shares `writing`, so that no reclaim takes it away meanwhile.
 */
export async function readSound(repository: Repository, name: string): Promise<Buffer | undefined> {
  const bytes = asBuffer(await repository.blobs.local.get(name))
  try {
    return (await isSound(repository, name, bytes)) ? bytes : undefined
  } catch (error) {
    if (error instanceof Damage) return undefined
    throw error
  }
}

async function isSound(repository: Repository, name: string, bytes: Buffer): Promise<boolean> {
  const { packs, sealer } = repository
  const [folder, serverId = '', backupId = ''] = name.split('/')
  if (folder === 'index') {
    await readIndex(inMemory(bytes), sealer, name)
    return true
  }
  if (folder === 'parts') {
    await checkPart(inMemory(bytes), sealer, name)
    return true
  }
  if (folder === 'manifests') {
    const { places, chunkAt } = await openManifest(inMemory(bytes), sealer, { serverId, backupId })
    // What it has in parts is not in these bytes: they are blobs of their own.
    for (const [at, { part }] of places.entries()) if (part === undefined) await chunkAt(at)
    return true
  }
  const packId = lastSegment(name)
  if ((packs.get(packId) ?? bytes.length) !== bytes.length) return false
  return await isSoundPack(repository, packId, shared(bytes))
}

/** In memory that the worker threads see, too. */
function shared(bytes: Buffer): FetchedRange {
  const memory = new SharedArrayBuffer(bytes.length)
  bytes.copy(Buffer.from(memory))
  return { offset: 0, length: bytes.length, bytes: memory, at: 0 }
}

/** Every byte of it is what was written, and it holds just what the index says. */
export async function isSoundPack(repository: Repository, packId: string, whole: FetchedRange): Promise<boolean> {
  const bytes = Buffer.from(whole.bytes, whole.at, whole.length)
  const { table } = await readPackTable(inMemory(bytes), packId)
  const listed = await listedTable(repository, packId)
  if (listed && !listed.equals(table)) return false
  const frames = decodeTable(table)
  const isAsWritten = (frame: Frame) =>
    faultOfUnnamed(packId, frame, bytes.subarray(frame.offset, frame.offset + frame.storedLength)) === undefined
  if (!frames.filter(isUnnamed).every(isAsWritten)) return false
  const wanted = frames.flatMap((frame) =>
    frame.blocks.map(({ id, ...place }) => ({ frame, ...place, ids: id, idAt: 0, ...NOT_WRITTEN })),
  )
  for (const job of decodeJobs(packId, wanted, { isStrict: true })) {
    const { damaged } = await repository.pool.decode({ ...job, fetched: [whole] })
    if (damaged.length > 0) return false
  }
  return true
}

/** As an index has it; undefined where none lists the pack. */
async function listedTable({ blobs, sealer }: Repository, packId: string): Promise<Buffer | undefined> {
  for await (const pack of listedPacks(blobs, sealer, () => {})) if (pack.packId === packId) return pack.table
  return undefined
}

/** A blob that is in memory. What it answers is a copy: it may be in memory that is shared, which not everything reads. */
export function inMemory(bytes: Buffer): Pick<BlobStore, 'stat' | 'get' | 'open'> {
  const read = ({ offset, length }: ByteRange) => Buffer.from(bytes.subarray(offset, offset + length))
  return {
    stat: async (name) => ({ name, sizeBytes: bytes.length, modifiedAt: 0 }),
    get: async (_, range = { offset: 0, length: bytes.length }) => read(range),
    open: async () => ({ get: async (range) => read(range), close: async () => {} }),
  }
}
