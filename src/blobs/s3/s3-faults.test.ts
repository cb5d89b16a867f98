// What S3 servers and the networks before them do wrong.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, it, mock } from 'node:test'
import { freePort, startSilentServer } from '../../../test/support/daemons.ts'
import { needs } from '../../../test/support/needs.ts'
import { firstly, type S3Seen } from '../../../test/support/s3-proxy.ts'
import { useTroubledS3 } from '../../../test/support/troubled-s3.ts'
import type { S3Keys, S3Place } from '../../contract/offsite-place.ts'
import { type BlobStore, isLost } from '../store.ts'
import { type S3Traits, s3Address } from './address.ts'
import type { Patience } from './requests.ts'
import { openS3Store } from './s3-store.ts'

const MIB = 1024 * 1024
const QUICK: Patience = { attempts: 4, firstPauseMs: 1, longestPauseMs: 5, connectMs: 60_000, stallMs: 60_000 }
/** Where something stalls; longer than a busy machine takes for what does not. */
const STALLS = { stallMs: 3000 }
const ABLE: Partial<S3Traits> = { conditionalPut: true, conditionalMultipart: true, checksum: 'crc32' }

const is = (method: string) => (seen: S3Seen) => seen.method === method
const isPart = (seen: S3Seen) => seen.method === 'PUT' && seen.url.includes('partNumber=')
const isComplete = (seen: S3Seen) => seen.method === 'POST' && seen.url.includes('uploadId=')

describe('what S3 servers do wrong', needs('versitygw'), () => {
  const s3 = useTroubledS3()

  interface Opened {
    place?: Partial<S3Place>
    keys?: Partial<S3Keys>
    traits?: Partial<S3Traits>
    patience?: Partial<Patience>
  }

  function open({ place = {}, keys = {}, traits = ABLE, patience = {} }: Opened = {}): Promise<BlobStore> {
    const address = s3Address(
      { ...s3.gateway.place(randomUUID(), s3.proxy.url), ...place },
      { ...s3.gateway.keys, ...keys },
    )
    const probed = { ...address, traits: { ...address.traits, ...traits } }
    return openS3Store(probed, { clear: false }, { ...QUICK, ...patience })
  }

  const sourceOf = (bytes: Buffer) => ({
    sizeBytes: bytes.length,
    read: async ({ offset, length }: { offset: number; length: number }) => bytes.subarray(offset, offset + length),
  })

  it('tries again after 500, 503 and 429, and gives up with a code when they do not end', async () => {
    const store = await open()
    for (const [status, code] of [
      [500, 'InternalError'],
      [503, 'SlowDown'],
      [429, 'TooManyRequests'],
    ] as const) {
      s3.proxy.trouble = firstly(3, () => true, { kind: 'answer', status, code })
      await store.put('packs/one', Buffer.from('bytes'))
      s3.proxy.trouble = firstly(3, () => true, { kind: 'answer', status, code })
      assert.equal(Buffer.from(await store.get('packs/one')).toString(), 'bytes')
    }
    s3.proxy.trouble = () => ({ kind: 'answer', status: 503, code: 'SlowDown' })
    s3.proxy.seen.length = 0
    await assert.rejects(store.get('packs/one'), { code: 'slow_down', isPassing: true })
    assert.equal(s3.proxy.seen.length, QUICK.attempts)
    s3.proxy.trouble = () => ({ kind: 'answer', status: 500 })
    await assert.rejects(store.delete('packs/one'), { code: 'server_error' })
  })

  it('waits as long as it is asked to', async () => {
    const store = await open({ patience: { longestPauseMs: 1500 } })
    await store.put('packs/one', Buffer.from('bytes'))
    s3.proxy.trouble = firstly(1, () => true, {
      kind: 'answer',
      status: 503,
      code: 'SlowDown',
      headers: { 'retry-after': '1' },
    })
    const began = performance.now()
    await store.stat('packs/one')
    assert.ok(performance.now() - began >= 990)
  })

  it('reads once more what was cut in the middle of an answer, and gives nothing that is shorter', async () => {
    const store = await open()
    const bytes = randomBytes(MIB)
    await store.put('packs/one', bytes)
    s3.proxy.trouble = firstly(2, is('GET'), { kind: 'cut-answer', afterBytes: 300_000 })
    assert.deepEqual(Buffer.from(await store.get('packs/one')), bytes)
    s3.proxy.trouble = () => ({ kind: 'cut-answer', afterBytes: 300_000 })
    const range = { offset: 10, length: 900_000 }
    await assert.rejects(store.get('packs/one', range), { code: 'unreachable', isPassing: true })
  })

  it('reads a range straight into memory, and once more what was cut, stalled or refused', async () => {
    const store = await open({ patience: STALLS })
    const bytes = randomBytes(2 * MIB)
    await store.put('packs/one', bytes)
    const into = Buffer.from(new SharedArrayBuffer(MIB + 10))
    const range = { offset: 10, length: MIB }
    const read = async () => {
      into.fill(0)
      const got = await store.get('packs/one', range, into)
      assert.equal(got.buffer, into.buffer)
      assert.ok(bytes.subarray(10, 10 + MIB).equals(got))
    }
    await read()
    const troubles = [
      { kind: 'cut-answer', afterBytes: 0 },
      { kind: 'cut-answer', afterBytes: 300_000 },
      { kind: 'stall-answer', afterBytes: 300_000 },
      { kind: 'answer', status: 500, code: 'InternalError' },
    ] as const
    for (const trouble of troubles) {
      s3.proxy.trouble = firstly(trouble.kind === 'answer' ? 2 : 1, is('GET'), trouble)
      await read()
    }
    s3.proxy.trouble = () => ({ kind: 'cut-answer', afterBytes: 300_000 })
    await assert.rejects(store.get('packs/one', range, into), { code: 'unreachable', isPassing: true })
    s3.proxy.trouble = () => ({ kind: 'change-answer', headers: { 'content-range': `bytes 0-${MIB - 1}/${2 * MIB}` } })
    await assert.rejects(store.get('packs/one', range, into), { code: 'not_s3' })
    s3.proxy.trouble = () => undefined
    await assert.rejects(store.get('packs/none', range, into), { code: 'blob_missing' })
    assert.equal((await store.get('packs/one', { offset: 2 * MIB - 5, length: MIB }, into)).length, 5)
    assert.equal((await store.get('packs/one', { offset: 3 * MIB, length: 1 }, into)).length, 0)
    await read()
  })

  it('sends once more what was cut in the middle of an upload, and leaves nothing where that does not help', async () => {
    const store = await open()
    const bytes = randomBytes(3 * MIB)
    s3.proxy.trouble = firstly(2, is('PUT'), { kind: 'cut-request', afterBytes: MIB })
    await store.copyIn?.('packs/one', sourceOf(bytes))
    assert.deepEqual(Buffer.from(await store.get('packs/one')), bytes)
    s3.proxy.trouble = (seen) => (seen.method === 'PUT' ? { kind: 'cut-request', afterBytes: MIB } : undefined)
    await assert.rejects(store.copyIn?.('packs/two', sourceOf(bytes)) ?? Promise.resolve(), { code: 'unreachable' })
    await assert.rejects(store.stat('packs/two'), { code: 'blob_missing' })
  })

  it('gives up on what stalls, in both directions, and tries again', async () => {
    const store = await open({ patience: STALLS })
    const bytes = randomBytes(8 * MIB)
    s3.proxy.trouble = firstly(1, is('PUT'), { kind: 'stall-request', afterBytes: MIB })
    await store.copyIn?.('packs/one', sourceOf(bytes))
    s3.proxy.trouble = firstly(1, is('GET'), { kind: 'stall-answer', afterBytes: 300_000 })
    assert.deepEqual(Buffer.from(await store.get('packs/one')), bytes)
    s3.proxy.trouble = () => ({ kind: 'stall-answer', afterBytes: 0 })
    const impatient = await open({ patience: { attempts: 1, stallMs: 400 } })
    await assert.rejects(impatient.stat('packs/one'), { code: 'stalled', isPassing: true })
  })

  it('finds out that a blob is stored although the answer was lost, and does not send it over another', async () => {
    const store = await open()
    const bytes = randomBytes(MIB)
    s3.proxy.trouble = firstly(1, is('PUT'), { kind: 'cut-answer', afterBytes: 0 })
    await store.copyIn?.('packs/one', sourceOf(bytes))
    assert.equal(s3.proxy.seen.filter(is('PUT')).length, 1, 'nothing is sent twice')
    s3.proxy.trouble = firstly(1, is('PUT'), { kind: 'answer', status: 412, code: 'PreconditionFailed' })
    const other = sourceOf(randomBytes(MIB))
    await assert.rejects(store.copyIn?.('packs/one', other) ?? Promise.resolve(), { code: 'blob_exists' })
    assert.deepEqual(Buffer.from(await store.get('packs/one')), bytes)
  })

  it('finds out that an upload in parts is complete although the answer was lost', async () => {
    const store = await open()
    const bytes = randomBytes(9 * MIB)
    s3.proxy.trouble = firstly(1, isComplete, { kind: 'cut-answer', afterBytes: 0 })
    const writer = await store.create('packs/one')
    await writer.write(bytes)
    await writer.commit()
    assert.deepEqual(Buffer.from(await store.get('packs/one')), bytes)
  })

  it('completes nothing whose parts the provider does not have, whatever it had said of them', async () => {
    const store = await open()
    const trouble = { kind: 'change-answer', headers: { etag: '"00000000000000000000000000000000"' } } as const
    s3.proxy.trouble = firstly(1, isPart, trouble)
    const writer = await store.create('packs/one')
    await writer.write(randomBytes(9 * MIB))
    await assert.rejects(writer.commit(), { code: 'refused', s3Code: 'InvalidPart' })
    await assert.rejects(store.stat('packs/one'), { code: 'blob_missing' })
  })

  it('does not believe a provider that has stored something else by its own account', async () => {
    const store = await open()
    const bytes = randomBytes(1000)
    const trouble = { kind: 'change-answer', headers: { 'x-amz-checksum-crc32': 'AAAAAA==' } } as const
    s3.proxy.trouble = firstly(1, is('PUT'), trouble)
    await store.copyIn?.('packs/one', sourceOf(bytes))
    const changes = s3.proxy.seen.map(({ method }) => method).filter((method) => /PUT|DELETE/.test(method))
    assert.deepEqual(changes, ['PUT', 'DELETE', 'PUT'])
    s3.proxy.trouble = (seen) => (seen.method === 'PUT' ? trouble : undefined)
    await assert.rejects(store.copyIn?.('packs/two', sourceOf(bytes)) ?? Promise.resolve(), { code: 'bad_transfer' })
    await assert.rejects(store.stat('packs/two'), { code: 'blob_missing' })
  })

  it('reads once more what was changed on its way, and says that it is damaged where it stays so', async () => {
    const store = await open()
    const bytes = randomBytes(1000)
    await store.put('index/one', bytes)
    const flip = (sent: Buffer) => Buffer.from(sent.map((byte, index) => (index === 7 ? byte ^ 1 : byte)))
    s3.proxy.trouble = firstly(1, is('GET'), { kind: 'change-answer', bytes: flip })
    assert.deepEqual(Buffer.from(await store.get('index/one')), bytes)
    s3.proxy.trouble = () => ({ kind: 'change-answer', bytes: flip })
    await assert.rejects(store.get('index/one'), (error) => isLost(error))
  })

  it('takes no answer for missing that S3 has not given, nor a list for complete that does not say so', async () => {
    const store = await open()
    await store.put('packs/one', Buffer.from('bytes'))
    const html = {
      kind: 'answer',
      status: 404,
      body: '<html>Not here</html>',
      headers: { 'content-type': 'text/html' },
    } as const
    s3.proxy.trouble = () => html
    for (const ask of [() => store.stat('packs/one'), () => store.get('packs/one'), () => store.open('packs/one')])
      await assert.rejects(ask, (error: Error & { code?: string }) => error.code !== 'blob_missing' && !isLost(error))
    const page = '<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>'
    s3.proxy.trouble = () => ({ kind: 'answer', status: 200, body: page })
    await assert.rejects(Array.fromAsync(store.list('')), { code: 'not_s3' })
    s3.proxy.trouble = (seen) =>
      seen.method === 'GET' ? { kind: 'change-answer', headers: { 'content-range': 'bytes 0-1/5' } } : undefined
    await assert.rejects(store.get('packs/one', { offset: 2, length: 2 }), { code: 'not_s3' })
  })

  const wrong: [string, Opened, string, RegExp][] = [
    [
      'the id of a key that nobody knows',
      { keys: { accessKeyId: 'nobody' } },
      'wrong_key',
      /does not know the id of the key/,
    ],
    ['a wrong secret', { keys: { secretAccessKey: 'wrong' } }, 'wrong_key', /The secret of the key is wrong/],
    [
      'a bucket that is not there',
      { place: { bucket: 'nothing-here' } },
      'no_bucket',
      /There is no bucket nothing-here/,
    ],
    ['another region', { place: { region: 'eu-central-1' } }, 'wrong_region', /region/],
  ]
  for (const [label, opened, code, words] of wrong) {
    it(`says so in words: ${label}`, async () => {
      const store = await open(opened)
      for (const ask of [() => store.put('packs/one', Buffer.from('x')), () => store.get('packs/one')])
        await assert.rejects(ask, (error: Error & { code?: string }) => {
          assert.equal(error.code, code)
          assert.match(error.message, words)
          assert.doesNotMatch(JSON.stringify(error) + error.message, /secret-of-tests/)
          return true
        })
      assert.equal(s3.proxy.seen.length, 2, 'nothing of this passes by itself')
    })
  }

  it('says so in words: nobody listens there, no such host, no answer to a connection, no TLS', async () => {
    const port = await freePort()
    const silent = await startSilentServer()
    const ends = {
      [`http://127.0.0.1:${port}`]: /cannot be reached \(ECONNREFUSED\)/,
      'http://bucket.invalid': /cannot be reached \((?:ENOTFOUND|EAI_AGAIN)\)/,
      [`http://127.0.0.1:${silent.port}`]: /stopped in the middle of HeadObject/,
      [s3.gateway.url.replace('http:', 'https:')]: /No trusted connection/,
    }
    for (const [endpoint, words] of Object.entries(ends)) {
      // The others say so themselves, however busy the machine is.
      const patience = { attempts: 1, ...(endpoint.endsWith(`:${silent.port}`) ? { stallMs: 400 } : {}) }
      const store = await open({ place: { endpoint }, patience })
      await assert.rejects(store.stat('packs/one'), words, endpoint)
    }
    await silent.close()
  })

  it('signs by the time of the provider where this machine has another', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.now() - 3 * 3600_000 })
    try {
      const store = await open()
      await store.put('packs/one', Buffer.from('bytes'))
      assert.equal(Buffer.from(await store.get('packs/one')).toString(), 'bytes')
    } finally {
      mock.timers.reset()
    }
    s3.proxy.trouble = () => ({ kind: 'answer', status: 403, code: 'RequestTimeTooSkewed' })
    const refused = await open()
    await assert.rejects(refused.put('packs/one', Buffer.from('x')), { code: 'clock_skew', message: /NTP/ })
  })

  it('passes a failure of the source on as it is, and does not try it again', async () => {
    const store = await open()
    const failure = new Error('the disk is gone')
    let reads = 0
    const source = {
      sizeBytes: 3 * MIB,
      read: async () => {
        if (++reads > 4) throw failure
        return Buffer.alloc(MIB)
      },
    }
    await assert.rejects(store.copyIn?.('packs/one', source) ?? Promise.resolve(), failure)
    assert.equal(reads, 5)
    await assert.rejects(store.stat('packs/one'), { code: 'blob_missing' })
  })
})
