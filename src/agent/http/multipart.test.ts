import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isFailure } from '../../contract/errors.ts'
import { attachment, parseDisposition } from './disposition.ts'
import { boundaryOf, readMultipart } from './multipart.ts'

const BOUNDARY = '----b'

function encode(parts: { name: string; body: Buffer }[], boundary = BOUNDARY): Buffer {
  const pieces = parts.flatMap(({ name, body }) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`),
    body,
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)])
}

async function* inPieces(bytes: Buffer, cuts: readonly number[]) {
  let from = 0
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    const to = Math.min(cut, bytes.length)
    if (to > from) yield bytes.subarray(from, to)
    from = Math.max(from, to)
  }
  if (from < bytes.length) yield bytes.subarray(from)
}

async function decode(source: AsyncIterable<Buffer>, boundary = BOUNDARY) {
  const parts: { name: string; body: Buffer }[] = []
  for await (const { headers, body } of readMultipart(source, boundary)) {
    const chunks: Buffer[] = []
    for await (const chunk of body) chunks.push(chunk)
    parts.push({ name: parseDisposition(headers.get('content-disposition')).name, body: Buffer.concat(chunks) })
  }
  return parts
}

/** Made of what boundaries are made of, so that near misses are common. */
const tricky = fc
  .array(fc.constantFrom('\r', '\n', '-', '--', '\r\n--', '\r\n----', '\r\n---', 'b', 'x', '\r\n\r\n', '\0'), {
    maxLength: 30,
  })
  .map((pieces) => Buffer.from(pieces.join('')))
  .filter(
    (body) => !body.includes('\r\n------b') && !Buffer.concat([Buffer.from('\r\n'), body]).includes('\r\n------b'),
  )

test('what was put into a form comes out of it, however it is cut', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ name: fc.constantFrom('files', 'a', ''), body: tricky }, { noNullPrototype: true }), {
        maxLength: 5,
      }),
      fc.array(fc.nat(600), { maxLength: 40 }),
      async (parts, cuts) => {
        assert.deepEqual(await decode(inPieces(encode(parts), cuts)), parts)
      },
    ),
    { numRuns: 2000 },
  ))

test('a body that ends anywhere before its last boundary is refused', async () => {
  const whole = encode([{ name: 'files', body: Buffer.from('hello\r\n--') }])
  for (let length = 0; length < whole.length - 2; length++)
    await assert.rejects(decode(inPieces(whole.subarray(0, length), [])), (error) =>
      isFailure(error, 'invalid_request'),
    )
})

test('headers and what lies outside the parts have a limit', async () => {
  const long = Buffer.from(`--${BOUNDARY}\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`)
  await assert.rejects(decode(inPieces(long, [100])), (error) => isFailure(error, 'invalid_request'))
  async function* endless() {
    for (;;) yield Buffer.alloc(1000)
  }
  await assert.rejects(decode(endless()), (error) => isFailure(error, 'invalid_request'))
})

test('a form that is refused ends what it is read from', async () => {
  let isEnded = false
  async function* source() {
    try {
      for (;;) yield Buffer.from(`--${BOUNDARY}\r\nX: ${'y'.repeat(20_000)}`)
    } finally {
      isEnded = true
    }
  }
  await assert.rejects(decode(source()), (error) => isFailure(error, 'invalid_request'))
  assert.equal(isEnded, true)
})

/** Of the processor, which others on the machine do not lengthen. */
async function costOf(work: () => Promise<unknown> | unknown): Promise<number> {
  const before = process.cpuUsage()
  for (let round = 0; round < 3; round++) await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** Warmed up first, so that nothing is compiled while it is measured. */
async function assertCostsAlike(odd: () => Promise<unknown> | unknown, plain: () => Promise<unknown> | unknown) {
  await plain()
  const usual = await costOf(plain)
  const cost = await costOf(odd)
  assert.ok(cost < 50 * usual + 50_000, `${cost} µs, where the same length costs ${usual} µs`)
}

test('a megabyte of blanks in part headers costs no more than one of letters', async () => {
  const form = (filler: string) =>
    Buffer.concat(
      Array.from({ length: 64 }, () =>
        Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\nX:y${filler}z\r\n\r\n\r\n`),
      ).concat(Buffer.from(`--${BOUNDARY}--\r\n`)),
    )
  const [blanks, letters] = [form(' '.repeat(16_000)), form('y'.repeat(16_000))]
  await assertCostsAlike(
    async () => assert.equal((await decode(inPieces(blanks, []))).length, 64),
    async () => assert.equal((await decode(inPieces(letters, []))).length, 64),
  )
})

test('a name of nothing but backslashes costs no more than one of letters', () =>
  assertCostsAlike(
    () => parseDisposition(Buffer.from(`form-data; name="${'\\'.repeat(15_999)}`)),
    () => parseDisposition(Buffer.from(`form-data; name="${'a'.repeat(15_999)}`)),
  ))

test('a part has 16 headers at most, and a form 10,000 parts', async () => {
  const part = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}: y\r\n`).join('')
  const form = (headers: string) =>
    Buffer.from(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="files"\r\n${headers}\r\nx\r\n--${BOUNDARY}--\r\n`,
    )
  assert.equal((await decode(inPieces(form(part(15)), []))).length, 1)
  await assert.rejects(decode(inPieces(form(part(16)), [])), (error) => isFailure(error, 'invalid_request'))
  const many = (count: number) => encode(Array.from({ length: count }, () => ({ name: 'a', body: Buffer.alloc(0) })))
  assert.equal((await decode(inPieces(many(10_000), []))).length, 10_000)
  await assert.rejects(decode(inPieces(many(10_001), [])), (error) => isFailure(error, 'too_large'))
})

test('a boundary is taken quoted or plain, and only from a form', () => {
  assert.equal(boundaryOf('multipart/form-data; boundary=abc'), 'abc')
  assert.equal(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b"'), 'a b')
  for (const type of [undefined, 'text/plain; boundary=x', 'multipart/form-data', 'multipart/mixed; boundary=x'])
    assert.throws(
      () => boundaryOf(type),
      (error) => isFailure(error, 'unsupported_media_type'),
    )
})

test('a file name is read as browsers, curl and libraries write it', () => {
  const name = (rest: string) => parseDisposition(Buffer.from(`form-data; name="files"; ${rest}`)).filename
  assert.equal(name('filename="a/b c.txt"'), 'a/b c.txt')
  assert.equal(name('filename=plain.txt'), 'plain.txt')
  assert.equal(name('filename="q%22uote.txt"'), 'q"uote.txt')
  assert.equal(name('filename="q\\"uote.txt"'), 'q"uote.txt')
  assert.equal(name('filename="ünï.txt"'), 'ünï.txt')
  assert.equal(name(`filename="x"; filename*=UTF-8''na%C3%AFve.txt`), 'naïve.txt')
  assert.equal(name('x=y'), undefined)
  assert.throws(() => parseDisposition(Buffer.from([...Buffer.from('form-data; filename="'), 0xff, 0x22])))
})

test('a download is named for every browser and never ends its header', () => {
  assert.equal(attachment('a b.txt'), 'attachment; filename="a b.txt"')
  assert.equal(attachment('ü".txt'), `attachment; filename="__.txt"; filename*=UTF-8''%C3%BC%22.txt`)
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (name) => /^[\x20-\x7e]*$/.test(attachment(name))))
})
