// A worker thread's writing: frames are fetched, decoded and checked, and the blocks in them written to where files want
// them. It works on descriptors and never sees a path.
import { BlobMissing, type BlobStore } from '../../blobs/store.ts'
import { hasCode } from '../../kit/errno.ts'
import { FRAME_BYTES, packBlob } from './format.ts'
import { createRunWriter, type RunWriter } from './run-writer.ts'
import type { Sealer } from './seal.ts'
import { type DecodeJob, type DecodeResult, errorCode, type WantedFrame } from './worker-jobs.ts'

/** Neighbouring frames are fetched together up to this size: one read from a disk, one request to an object store. */
const FETCH_BYTES = 1024 * 1024

/** What one job after another uses: fresh memory for each would cost as much as reading into it. */
export interface Lane {
  fetched: Buffer
  decoded: Buffer
  runs: RunWriter
}

export interface Tools {
  sealer: Sealer
  blobs: BlobStore
}

export function createLane(): Lane {
  return {
    fetched: Buffer.allocUnsafeSlow(FETCH_BYTES),
    decoded: Buffer.allocUnsafeSlow(FRAME_BYTES),
    runs: createRunWriter(),
  }
}

/** Decodes frames, checks every block in them, and writes those that a file wants to where it wants them. */
export async function decodeFrames(tools: Tools, lane: Lane, job: DecodeJob): Promise<DecodeResult> {
  const result: DecodeResult = { damaged: [], bytes: 0 }
  try {
    await decodeGroups(tools, lane, job, result)
  } finally {
    await lane.runs.finish()
  }
  return result
}

async function decodeGroups(tools: Tools, lane: Lane, job: DecodeJob, result: DecodeResult): Promise<void> {
  for (const group of groupNeighbours(job.frames)) {
    const first = group[0]
    const last = group.at(-1)
    if (!first || !last) continue
    const range = { offset: first.offset, length: last.offset + last.storedLength - first.offset }
    const fetched = await tools.blobs.get(packBlob(job.packId), range, lane.fetched).catch((error: unknown) => {
      // Anything else may pass, and says nothing about the block.
      if (error instanceof BlobMissing || hasCode(error, 'EIO')) return errorCode(error)
      throw error
    })
    for (const frame of group) {
      const at = frame.offset - range.offset
      const checked =
        typeof fetched === 'string'
          ? fetched
          : checkFrame(tools.sealer, lane, job.isStrict, frame, fetched.subarray(at, at + frame.storedLength))
      if (typeof checked === 'string') {
        const blocks = frame.blocks.map(({ id }) => Buffer.from(id))
        result.damaged.push({ frame: frame.frame, what: checked, blocks })
      } else {
        for (const { target, inner, length, offset } of frame.writes) {
          const waits = lane.runs.add(target, checked.subarray(inner, inner + length), offset)
          if (waits) await waits
        }
      }
      result.bytes += frame.storedLength
    }
  }
}

/** What the frame holds, or what is wrong with it. */
function checkFrame(
  sealer: Sealer,
  { decoded }: Lane,
  isStrict: boolean,
  frame: WantedFrame,
  stored: Uint8Array,
): string | Uint8Array {
  let raw: Uint8Array
  try {
    if (stored.length !== frame.storedLength) return 'the pack ends too early'
    raw = sealer.decode(stored, frame, isStrict, decoded)
  } catch (error) {
    return error instanceof Error ? error.message : 'cannot be decoded'
  }
  for (const { id, inner, length } of frame.blocks) {
    if (!sealer.idOf(raw.subarray(inner, inner + length)).equals(id)) return 'a block is not what its name says'
  }
  return raw
}

function groupNeighbours(frames: WantedFrame[]): WantedFrame[][] {
  const groups: WantedFrame[][] = []
  let size = 0
  for (const frame of frames) {
    const group = groups.at(-1)
    const before = group?.at(-1)
    const isNext = before !== undefined && before.offset + before.storedLength === frame.offset
    if (group && isNext && size + frame.storedLength <= FETCH_BYTES) {
      group.push(frame)
      size += frame.storedLength
    } else {
      groups.push([frame])
      size = frame.storedLength
    }
  }
  return groups
}
