// Bodies of upload forms. The first byte says how the rest is cut into pieces; what was read must not depend on that.
import assert from 'node:assert/strict'
import { parseDisposition } from '../../../src/agent/http/disposition.ts'
import { readMultipart } from '../../../src/agent/http/multipart.ts'
import { isFailure } from '../../../src/contract/errors.ts'

const BOUNDARY = '----b'

export const covers = ['/src/agent/http/multipart.ts', '/src/agent/http/disposition.ts']

export const dictionary = [
  ...['\r\n', '\r\n\r\n', `--${BOUNDARY}`, `\r\n--${BOUNDARY}`, `--${BOUNDARY}--`, '    ', '\t', '\\', '\\"', '"', ';'],
  ...[
    'Content-Disposition: form-data',
    '; name="files"',
    '; filename="a.txt"',
    "; filename*=UTF-8''%C3%A4",
    '%22',
    ':',
  ],
]

const part = (disposition: string, body: string) =>
  `--${BOUNDARY}\r\nContent-Disposition: ${disposition}\r\nContent-Type: text/plain\r\n\r\n${body}\r\n`
const form = (...parts: string[]) => Buffer.from(`\x07${parts.join('')}--${BOUNDARY}--\r\n`)

export function seeds(): Uint8Array[] {
  return [
    form(part('form-data; name="files"; filename="a/b.txt"', 'hello')),
    form(
      part('form-data; name="files"; filename="a"', `\r\n--${BOUNDARY.slice(0, -1)}`),
      part('form-data; name="x"', ''),
    ),
    form(part(`form-data; name="files"; filename*=UTF-8''na%C3%AFve.txt`, '\r\n--')),
    // A pattern that reads a backslash in two ways never comes to an end with this, nor one for blanks with the next.
    form(part(`form-data; name="${'\\'.repeat(4000)}`, '')),
    form(part(`form-data; name="files"${' '.repeat(16_000)}x`, '')),
  ]
}

export async function run(input: Buffer): Promise<void> {
  const [size = 0] = input
  const body = input.subarray(1)
  assert.deepEqual(await read(body, size + 1), await read(body, body.length + 1))
}

/** What every part is, or the code of the refusal. */
async function read(body: Buffer, size: number): Promise<unknown> {
  const found: unknown[] = []
  try {
    for await (const { headers, body: content } of readMultipart(inPieces(body, size), BOUNDARY)) {
      const field = parseDisposition(headers.get('content-disposition'))
      const chunks: Buffer[] = []
      for await (const chunk of content) chunks.push(chunk)
      found.push(field, Buffer.concat(chunks).toString('hex'))
    }
    return found
  } catch (error) {
    if (!isFailure(error)) throw error
    return error.code
  }
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
