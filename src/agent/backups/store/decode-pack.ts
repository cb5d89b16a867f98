// Has the worker threads decode parts of a pack from wherever it is: from the disk, or fetched from the off-site copy. What
// is damaged on the disk is read from the copy.
import { StoreUnreachable } from '../../../blobs/layered.ts'
import { isLost } from '../../../blobs/store.ts'
import type { BlockPlace } from '../blocks/block-index.ts'
import { FRAME } from '../workers/decode-jobs.ts'
import type { Pool } from '../workers/pool.ts'
import type { DecodeJob, DecodeResult } from '../workers/worker-jobs.ts'
import type { PackFetch, WantedRange } from './pack-fetch.ts'
import type { Repository } from './repository.ts'

export interface PackSource {
  repository: Repository
  pool: Pool
  fetch: PackFetch
}

export interface Decoded extends DecodeResult {
  /** What the disk had lost and the copy gave. */
  spared: DecodeResult['damaged']
}

type Job = Omit<DecodeJob, 'kind'>

/** Throws `StoreUnreachable` where the pack is only in the copy and that does not answer. */
export async function decodePart(source: PackSource, job: Job): Promise<Decoded> {
  const { repository, pool } = source
  if (repository.isAway(job.packId)) return { ...(await decodeCopy(source, job)), spared: [] }
  const result = await pool.decode(job)
  const { damaged } = result
  if (damaged.length === 0 || !repository.offsite) return { ...result, spared: [] }
  try {
    const again = await decodeCopy(source, job)
    return again.damaged.length > 0 ? { ...result, spared: [] } : { ...again, spared: damaged }
  } catch (error) {
    if (!(error instanceof StoreUnreachable)) throw error
    return { ...result, spared: [] }
  }
}

/** From the copy, whatever the disk has. */
export async function decodeCopy({ pool, fetch }: Pick<PackSource, 'pool' | 'fetch'>, job: Job): Promise<DecodeResult> {
  try {
    return await fetch.read(job.packId, rangesOf(job), (fetched) => pool.decode({ ...job, fetched }))
  } catch (error) {
    if (!isLost(error)) throw error
    // As if nothing of the pack were left.
    return await pool.decode({ ...job, fetched: [] })
  }
}

function rangesOf({ frames }: Job): WantedRange[] {
  const ranges: WantedRange[] = []
  for (let row = 0; row < frames.length; row += FRAME.fields)
    ranges.push({
      offset: frames[row + FRAME.offset] ?? 0,
      length: frames[row + FRAME.storedLength] ?? 0,
      uses: frames[row + FRAME.blockCount] ?? 0,
    })
  return ranges
}

/** The block will be read: where it is in the copy, it comes with what else is wanted of its pack. */
export function expectBlock({ repository, fetch }: Omit<PackSource, 'pool'>, place: BlockPlace): void {
  if (repository.isAway(place.packId))
    fetch.expect(place.packId, { offset: place.offset, length: place.storedLength, uses: 1 })
}
