// Cuts what a game writes into lines, without ever holding more than one line of it.
import { CONSOLE_LINE_MAX_BYTES } from '../../../contract/fixed-limits.ts'
import { LINE_END } from './segments.ts'

const RETURN = 13

export interface LineSplitter {
  /** The lines that end in this chunk. */
  push(chunk: Buffer): Buffer[]
  /** What has not ended yet, as a line. */
  end(): Buffer[]
}

export function createLineSplitter(): LineSplitter {
  /** The beginning of a line; what of it is beyond the limit is not kept. */
  let pending: Buffer[] = []
  let pendingBytes = 0

  function keep(part: Buffer): void {
    const room = CONSOLE_LINE_MAX_BYTES - pendingBytes
    if (room <= 0 || part.length === 0) return
    // A copy: a part would keep the whole chunk in memory.
    const kept = Buffer.from(part.subarray(0, room))
    pending.push(kept)
    pendingBytes += kept.length
  }

  function finish(part: Buffer): Buffer {
    const line = pendingBytes === 0 ? part : Buffer.concat([...pending, part])
    pending = []
    pendingBytes = 0
    const cut = line.length > CONSOLE_LINE_MAX_BYTES ? line.subarray(0, CONSOLE_LINE_MAX_BYTES) : line
    return cut.at(-1) === RETURN ? cut.subarray(0, -1) : cut
  }

  return {
    push(chunk) {
      const lines: Buffer[] = []
      let from = 0
      for (let at = chunk.indexOf(LINE_END); at >= 0; at = chunk.indexOf(LINE_END, from)) {
        lines.push(finish(chunk.subarray(from, at)))
        from = at + 1
      }
      keep(chunk.subarray(from))
      return lines
    },
    end: () => (pendingBytes === 0 ? [] : [finish(Buffer.alloc(0))]),
  }
}
