// What a worker has to decode and check, as rows of numbers: cloning a small object for every block costs both threads
// more than the work itself.
import type { DirectTarget } from '../../../blobs/direct-io.ts'
import { ID_BYTES } from '../format/format.ts'
import type { FrameRow } from '../format/pack-table.ts'
import type { Span } from '../format/spans.ts'
import { type NewFile, newFilesOf } from './new-files.ts'
import type { DecodeJob } from './worker-jobs.ts'

const JOB_BYTES = 4 * 1024 * 1024

/** Of a row of `DecodeJob.frames`. */
export const FRAME = { offset: 0, storedLength: 1, rawLength: 2, codec: 3, crc: 4, blockCount: 5, fields: 6 } as const
/**
 * Of a row of `DecodeJob.blocks`; `fd` is -1 where it is written to no open file, `file` where it is no whole file. `sectors`:
 * see `Write`.
 */
export const BLOCK = {
  inner: 0,
  length: 1,
  fd: 2,
  directFd: 3,
  offset: 4,
  file: 5,
  sectors: 6,
  fields: 7,
} as const

export interface WantedBlock {
  frame: FrameRow
  inner: number
  length: number
  /** Its id stands in `ids` at `idAt`. */
  ids: Uint8Array
  idAt: number
  /** Where it is to be written; null where it is only to be checked, or is the content of `file`. */
  target: DirectTarget | null
  /** In the target. */
  offset: number
  /** See `Write`. */
  sectors: number
  file?: NewFile | undefined
}

/** Of a block that is only to be checked. */
export const NOT_WRITTEN = { target: null, offset: 0, sectors: 0 } as const

/** In the order of the pack, in parts that keep a worker busy for a while. */
export function* decodeJobs(
  packId: string,
  blocks: WantedBlock[],
  { isStrict, spans = null }: { isStrict: boolean; spans?: Span | null | undefined },
): Generator<Omit<DecodeJob, 'kind'>> {
  const sorted = blocks.toSorted((a, b) => a.frame.offset - b.frame.offset || a.inner - b.inner)
  let first = 0
  let frames = 0
  let bytes = 0
  let before = -1
  let next = 0
  for (const { frame } of sorted) {
    const index = next++
    if (frame.offset === before) continue
    if (bytes >= JOB_BYTES) {
      yield { packId, isStrict, spans, ...asRows(sorted.slice(first, index), frames) }
      first = index
      frames = 0
      bytes = 0
    }
    before = frame.offset
    frames++
    bytes += frame.rawLength
  }
  if (frames > 0) yield { packId, isStrict, spans, ...asRows(sorted.slice(first), frames) }
}

/** Each array has memory of its own: a message carries the whole of what an array is a view of. */
function asRows(wanted: WantedBlock[], frameCount: number): Pick<DecodeJob, 'frames' | 'blocks' | 'ids' | 'files'> {
  const files: NewFile[] = []
  const frames = new Uint32Array(frameCount * FRAME.fields)
  const blocks = new Float64Array(wanted.length * BLOCK.fields)
  const ids = new Uint8Array(wanted.length * ID_BYTES)
  let row = -FRAME.fields
  let before = -1
  let index = 0
  for (const { frame, inner, length, ids: names, idAt, target, offset, sectors, file } of wanted) {
    if (frame.offset !== before) {
      before = frame.offset
      row += FRAME.fields
      frames[row + FRAME.offset] = frame.offset
      frames[row + FRAME.storedLength] = frame.storedLength
      frames[row + FRAME.rawLength] = frame.rawLength
      frames[row + FRAME.codec] = frame.codec
      frames[row + FRAME.crc] = frame.crc
    }
    frames[row + FRAME.blockCount] = (frames[row + FRAME.blockCount] ?? 0) + 1
    const at = index * BLOCK.fields
    blocks[at + BLOCK.inner] = inner
    blocks[at + BLOCK.length] = length
    blocks[at + BLOCK.fd] = target ? target.fd : -1
    blocks[at + BLOCK.directFd] = target ? target.directFd : -1
    blocks[at + BLOCK.offset] = offset
    blocks[at + BLOCK.file] = file ? files.push(file) - 1 : -1
    blocks[at + BLOCK.sectors] = sectors
    for (let byte = 0; byte < ID_BYTES; byte++) ids[index * ID_BYTES + byte] = names[idAt + byte] ?? 0
    index++
  }
  return { frames, blocks, ids, files: files.length > 0 ? newFilesOf(files) : null }
}
