// A server's console as bytes, many lines at a time, for who looks for a few lines among very many and takes apart only those.
import { nextSegment, PART_BYTES, type Place, readBytes } from './console-tail.ts'
import { countLines, LINE_END } from './segments.ts'

export interface ConsolePart {
  /** Whole lines, with their ends. They are there until the next part is asked for. */
  bytes: Buffer
  /** The number of the first. */
  firstLine: number
  /** Where the next part begins. */
  end: Place
}

/** Oldest first, up to the end as it is then. `buffer` takes the bytes: nobody else may use it meanwhile. */
export async function* partsFrom(folder: string, start: Place, buffer: PartBuffer): AsyncGenerator<ConsolePart> {
  let place: Place | undefined = start
  while (place) {
    const found = await readBytes(place.segment.path, place.offset, buffer)
    const bytes = found?.subarray(0, found.lastIndexOf(LINE_END) + 1)
    if (!bytes?.length) {
      place = nextSegment(folder, place)
      continue
    }
    const end: Place = {
      segment: place.segment,
      offset: place.offset + bytes.length,
      line: place.line + countLines(bytes),
    }
    yield { bytes, firstLine: place.line, end }
    // What is less than fits is all that there was.
    if (found && found.length < buffer.length) return
    place = end
  }
}

export type PartBuffer = ReturnType<typeof newPartBuffer>
export const newPartBuffer = () => Buffer.allocUnsafe(PART_BYTES)

/** Each line without its end, with its number. */
export function* linesOf({ bytes, firstLine }: ConsolePart): Generator<{ bytes: Buffer; line: number }> {
  let line = firstLine
  for (let from = 0, at = bytes.indexOf(LINE_END); at >= 0; from = at + 1, at = bytes.indexOf(LINE_END, from))
    yield { bytes: bytes.subarray(from, at), line: line++ }
}
