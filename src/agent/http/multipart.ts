// multipart/form-data (RFC 7578, RFC 2046) as a stream of parts, each a stream of bytes. See
// docs/decisions/multipart.md for why this is not a library.
import { fail } from '../../contract/errors.ts'

const HEADERS_MAX = 16 * 1024
const OUTSIDE_MAX = 64 * 1024
const CR = 13
const NOTHING = Buffer.alloc(0)

export interface Part {
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, Buffer>
  /** To be read to its end before the next part is asked for. */
  readonly body: AsyncIterable<Buffer>
}

export function boundaryOf(contentType: string | undefined): string {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType ?? '') ?? []
  const boundary = quoted ?? plain
  if (!boundary || !/^multipart\/form-data\s*;/i.test(contentType ?? ''))
    throw fail('unsupported_media_type', 'An upload is sent as multipart/form-data with a boundary, or by tus.')
  return boundary
}

export async function* readMultipart(source: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<Part> {
  const input = createInput(source, Buffer.from(`\r\n--${boundary}`))
  await discard(input.untilDelimiter())
  while (await input.isFollowedByPart()) {
    const headers = parseHeaders(await input.readHeaders())
    const body = input.untilDelimiter()
    yield { headers, body }
  }
  await discard(input.rest())
}

function createInput(source: AsyncIterable<Buffer>, delimiter: Buffer) {
  const chunks = source[Symbol.asyncIterator]()
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
      for (;;) {
        const [padding = ''] = /^[ \t]*/.exec(buffer.toString('latin1', 0, HEADERS_MAX)) ?? []
        const next = buffer.toString('latin1', padding.length, padding.length + 2)
        if (next.length === 2) {
          if (next === '--' && padding === '') return false
          if (next !== '\r\n') throw fail('invalid_request', 'A boundary is not followed by a line break.')
          buffer = buffer.subarray(padding.length)
          return true
        }
        if (padding.length >= HEADERS_MAX) throw fail('invalid_request', 'A boundary is padded without end.')
        await more(buffer)
      }
    },

    /** From the line break after the boundary to the empty line. */
    async readHeaders(): Promise<Buffer> {
      for (;;) {
        const end = buffer.subarray(0, HEADERS_MAX).indexOf('\r\n\r\n')
        if (end >= 0) {
          const headers = buffer.subarray(Math.min(2, end), end)
          buffer = buffer.subarray(end + 4)
          return headers
        }
        if (buffer.length >= HEADERS_MAX) throw fail('invalid_request', 'The headers of a part are too long.')
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
  for (const line of block.toString('latin1').split('\r\n')) {
    if (line === '') continue
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/s.exec(line) ?? []
    if (name === undefined || value === undefined) throw fail('invalid_request', 'A part has a malformed header.')
    if (headers.has(name.toLowerCase())) throw fail('invalid_request', `A part has two headers ${name}.`)
    headers.set(name.toLowerCase(), Buffer.from(value, 'latin1'))
  }
  return headers
}

async function discard(source: AsyncIterable<Buffer>): Promise<void> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > OUTSIDE_MAX) throw fail('invalid_request', 'The body has too much before or after its parts.')
  }
}
