// multipart/form-data (RFC 7578, RFC 2046) as a stream of parts, each a stream of bytes. See
// docs/decisions/multipart.md for why this is not a library.
import { fail } from '../../contract/errors.ts'
import { FORM_FILES_MAX, PART_HEADER_BYTES_MAX, PART_HEADERS_MAX } from '../../contract/fixed-limits.ts'

/** RFC 2046 allows no longer one. */
const BOUNDARY_MAX = 70
/** Blanks that somebody may put between a boundary and its line break. */
const PADDING_MAX = 256
const OUTSIDE_MAX = 64 * 1024
const [TAB, CR, SPACE] = [9, 13, 32]
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const NOTHING = Buffer.alloc(0)

export interface Part {
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, Buffer>
  /** To be read to its end before the next part is asked for. */
  readonly body: AsyncIterable<Buffer>
}

export function boundaryOf(contentType: string | undefined): string {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"\r\n]+)"|([^\s;"]+))/i.exec(contentType ?? '') ?? []
  const boundary = quoted ?? plain
  if (!boundary || boundary.length > BOUNDARY_MAX || !/^multipart\/form-data\s*;/i.test(contentType ?? ''))
    throw fail('unsupported_media_type', 'Send uploads as multipart/form-data with a boundary, or by tus.')
  return boundary
}

export async function* readMultipart(source: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<Part> {
  const chunks = source[Symbol.asyncIterator]()
  const input = createInput(chunks, Buffer.from(`\r\n--${boundary}`))
  try {
    await discard(input.untilDelimiter())
    for (let parts = 1; await input.isFollowedByPart(); parts++) {
      if (parts > FORM_FILES_MAX) throw fail('too_large', `A request may have at most ${FORM_FILES_MAX} files.`)
      const headers = parseHeaders(await input.readHeaders())
      const body = input.untilDelimiter()
      yield { headers, body }
    }
    await discard(input.rest())
  } finally {
    // Whatever is wrong with the form, its rest is not read.
    await chunks.return?.()
  }
}

function createInput(chunks: AsyncIterator<Buffer>, delimiter: Buffer) {
  // The first delimiter need not follow a line break: it is given one.
  let buffer: Buffer = Buffer.from('\r\n')

  /** Appends what arrives next to what is kept. */
  async function more(kept: Buffer): Promise<void> {
    const { value, done } = await chunks.next()
    if (done) throw fail('invalid_request', 'The body ended before its last boundary.')
    buffer = kept.length === 0 ? value : Buffer.concat([kept, value])
  }

  return {
    async *untilDelimiter(): AsyncGenerator<Buffer> {
      for (;;) {
        const at = buffer.indexOf(delimiter)
        if (at >= 0) {
          const last = buffer.subarray(0, at)
          buffer = buffer.subarray(at + delimiter.length)
          if (last.length > 0) yield last
          return
        }
        const sure = buffer.length - delimiterBegunAtEnd(buffer, delimiter)
        const kept = buffer.subarray(sure)
        const given = buffer.subarray(0, sure)
        buffer = kept
        if (given.length > 0) yield given
        await more(kept)
      }
    },

    /** After a delimiter: false when it was the last. */
    async isFollowedByPart(): Promise<boolean> {
      for (let padding = 0; ; ) {
        while (isBlank(buffer[padding])) padding++
        if (padding > PADDING_MAX) throw fail('invalid_request', 'A boundary is padded without end.')
        const next = buffer.toString('latin1', padding, padding + 2)
        if (next.length === 2) {
          if (next === '--' && padding === 0) return false
          if (next !== '\r\n') throw fail('invalid_request', 'A boundary is not followed by a line break.')
          buffer = buffer.subarray(padding)
          return true
        }
        await more(buffer)
      }
    },

    /** From the line break after the boundary to the empty line. */
    async readHeaders(): Promise<Buffer> {
      // What was searched before is not searched again, however small the pieces are in which it arrives.
      for (let searched = 0; ; ) {
        const end = buffer.subarray(0, PART_HEADER_BYTES_MAX).indexOf('\r\n\r\n', searched)
        if (end >= 0) {
          const headers = buffer.subarray(Math.min(2, end), end)
          buffer = buffer.subarray(end + 4)
          return headers
        }
        if (buffer.length >= PART_HEADER_BYTES_MAX) throw fail('invalid_request', 'The headers of a part are too long.')
        searched = Math.max(0, buffer.length - 3)
        await more(buffer)
      }
    },

    async *rest(): AsyncGenerator<Buffer> {
      if (buffer.length > 0) yield buffer
      buffer = NOTHING
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value
    },
  }
}

/** Only the last carriage return can begin a delimiter that is cut off: none stands within one. */
function delimiterBegunAtEnd(buffer: Buffer, delimiter: Buffer): number {
  const tail = buffer.subarray(Math.max(0, buffer.length - delimiter.length + 1))
  const at = tail.lastIndexOf(CR)
  if (at < 0) return 0
  const length = tail.length - at
  return tail.subarray(at).equals(delimiter.subarray(0, length)) ? length : 0
}

function parseHeaders(block: Buffer): Map<string, Buffer> {
  const headers = new Map<string, Buffer>()
  const lines = block.toString('latin1').split('\r\n', PART_HEADERS_MAX + 1)
  if (lines.length > PART_HEADERS_MAX) throw fail('invalid_request', 'A part has too many headers.')
  for (const line of lines) {
    if (line === '') continue
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    if (!HEADER_NAME.test(name)) throw fail('invalid_request', 'A part has a malformed header.')
    if (headers.has(name)) throw fail('invalid_request', `A part has two headers ${name}.`)
    headers.set(name, Buffer.from(withoutBlanks(line, colon + 1), 'latin1'))
  }
  return headers
}

const isBlank = (byte: number | undefined) => byte === SPACE || byte === TAB

/** Not by a pattern: one that looks for the blanks at the end takes the square of their number. */
function withoutBlanks(line: string, from: number): string {
  let [start, end] = [from, line.length]
  while (start < end && isBlank(line.charCodeAt(start))) start++
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--
  return line.slice(start, end)
}

async function discard(source: AsyncIterable<Buffer>): Promise<void> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > OUTSIDE_MAX) throw fail('invalid_request', 'The body has too much before or after its parts.')
  }
}
