// The end of a server's console, for those who follow it: a game may write fifty thousand lines a second to a hundred of them.
// Each batch begins where the last one ended, by its offset in the file, and those who are at the same place share one read.
import { open } from 'node:fs/promises'
import { CONSOLE_LINE_MAX_BYTES, STREAM_BATCH_BYTES } from '../../../contract/fixed-limits.ts'
import type { ConsoleLine } from '../../../contract/games/console.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { LINE_END, listSegments, parseLine, type Segment } from './segments.ts'

const LINES_AT_ONCE = 2000
/** So that one line fits, with what stands before it. */
export const PART_BYTES = STREAM_BATCH_BYTES + CONSOLE_LINE_MAX_BYTES + 64
/** Of readers at different places; who has none of them is found by counting lines. */
const PLACES_KEPT = 256

/** Where a line begins, or will. */
export interface Place {
  segment: Segment
  offset: number
  line: number
}

export interface ConsoleTail {
  /** Oldest first, with numbers above `after`, as much as a reader is handed at a time. Nothing where there is no more. */
  after(after: number): Promise<ConsoleLine[]>
}

export function createConsoleTail(folder: string): ConsoleTail {
  const places = new Map<number, Place>()
  const reading = new Map<number, Promise<ConsoleLine[]>>()

  function remember(place: Place): void {
    places.delete(place.line)
    places.set(place.line, place)
    for (const oldest of places.keys()) if (places.size > PLACES_KEPT) places.delete(oldest)
  }

  async function read(line: number): Promise<ConsoleLine[]> {
    let place = places.get(line) ?? (await findPlace(folder, line))
    while (place) {
      const part = await readPart(place)
      if (part && part.lines.length > 0) {
        remember(part.end)
        return part.lines
      }
      place = nextSegment(folder, place)
    }
    return []
  }

  return {
    after(after) {
      const known = reading.get(after)
      if (known) return known
      const made = read(after + 1).finally(() => reading.delete(after))
      reading.set(after, made)
      return made
    },
  }
}

/** From the end of a segment, or from one that was removed meanwhile, to the next one that is there. */
export function nextSegment(folder: string, { segment: { firstLine } }: Place): Place | undefined {
  const next = listSegments(folder).find((segment) => segment.firstLine > firstLine)
  return next && { segment: next, offset: 0, line: next.firstLine }
}

/** The line, or the oldest that is still there. */
export async function findPlace(folder: string, line: number): Promise<Place | undefined> {
  const segments = listSegments(folder)
  const segment = segments.findLast(({ firstLine }) => firstLine <= line) ?? segments[0]
  if (!segment) return undefined
  let place: Place = { segment, offset: 0, line: segment.firstLine }
  while (place.line < line) {
    const part = await readPart(place, line - place.line)
    if (!part || part.end.offset === place.offset) return place
    place = part.end
  }
  return place
}

/** Undefined where the file was removed. A line that is being written is none yet. */
async function readPart(
  { segment, offset, line }: Place,
  linesMax = LINES_AT_ONCE,
): Promise<{ lines: ConsoleLine[]; end: Place } | undefined> {
  const part = await readBytes(segment.path, offset)
  if (!part) return undefined
  const lines: ConsoleLine[] = []
  let from = 0
  for (let at = part.indexOf(LINE_END); at >= 0 && lines.length < linesMax; at = part.indexOf(LINE_END, from)) {
    if (from > STREAM_BATCH_BYTES) break
    lines.push(parseLine(part.subarray(from, at), line + lines.length))
    from = at + 1
  }
  return { lines, end: { segment, offset: offset + from, line: line + lines.length } }
}

/** As much as is handed on at a time. */
export async function readBytes(
  path: string,
  offset: number,
  buffer = Buffer.allocUnsafe(PART_BYTES),
): Promise<Buffer | undefined> {
  try {
    await using file = await open(path, 'r')
    const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
    return buffer.subarray(0, bytesRead)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
