// Uploads and downloads over a network that breaks, and a service that restarts, in the middle of them.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { openAsBlob, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestService, type TestService } from '../../test/support/service.ts'
import { type Proxy as Network, startProxy } from '../../test/support/unreliable.ts'
import { until } from '../../test/support/until.ts'
import { type ChunkReader, type Client, createClient, isApiError, TransportError } from './index.ts'

const MIB = 1024 * 1024

let service: TestService
let proxy: Network
let client: Client
let serverId: string
before(async () => {
  proxy = await startProxy(() => service.url)
  service = await startTestService()
  // A restart gives the service another port: everything goes by the proxy, which knows the one of the moment.
  const byProxy = (url: unknown, init?: RequestInit) => fetch(String(url).replace(/^http:\/\/[^/]+/, proxy.url), init)
  client = createClient({ baseUrl: proxy.url, token: service.adminToken, fetch: byProxy })
  serverId = (await service.createServer({ limits: { diskBytes: 64 * MIB } })).id
})
after(async () => {
  await service.stop()
  await proxy[Symbol.asyncDispose]()
})

const at = (path: string) => join(service.dataDir, 'servers', serverId, 'files', path)
const staged = () => readdirSync(join(service.dataDir, 'servers', serverId, 'staging'))
/** Bytes of an upload that is whole leave a record of it, and nothing else. */
const unfinished = () => staged().filter((name) => !name.endsWith('.json'))

/** Says what is read, so that the test can do something in between. */
function readerOf(bytes: Buffer<ArrayBuffer>, onRead: (count: number) => void | Promise<void> = () => {}): ChunkReader {
  let reads = 0
  return {
    sizeBytes: bytes.length,
    async read(from, to) {
      await onRead(++reads)
      return bytes.subarray(from, to)
    },
  }
}

async function collect(
  stream: ReadableStream<Uint8Array>,
  onChunk: (count: number) => void | Promise<void> = () => {},
) {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) {
    chunks.push(chunk)
    await onChunk(chunks.length)
  }
  return Buffer.concat(chunks)
}

describe('uploads', () => {
  test('a blob, a File by its own name, a reader, and nothing at all arrive as they are', async () => {
    const bytes = randomBytes(300_000)
    assert.deepEqual(await client.files.upload(serverId, new Blob([bytes]), { path: '/a/b/blob.bin' }), {
      path: '/a/b/blob.bin',
      sizeBytes: 300_000,
    })
    await client.files.upload(serverId, new File([bytes], 'ünï ✓.bin'), { directory: '/a' })
    await client.files.upload(serverId, readerOf(bytes), { path: 'reader.bin', checksum: true })
    await client.files.upload(serverId, new Blob([]), { directory: '/', name: 'deep/er/empty' })
    for (const path of ['a/b/blob.bin', 'a/ünï ✓.bin', 'reader.bin']) assert.deepEqual(readFileSync(at(path)), bytes)
    assert.deepEqual(readFileSync(at('deep/er/empty')), Buffer.alloc(0))
  })

  test('refusals come through as they are: a name that is taken, a bad name, the quota', async () => {
    writeFileSync(at('taken'), 'x')
    const refused = (code: Parameters<typeof isApiError>[1]) => (error: unknown) => isApiError(error, code)
    const blob = new Blob(['y'])
    await assert.rejects(
      client.files.upload(serverId, blob, { path: '/taken', overwrite: false }),
      refused('already_exists'),
    )
    await assert.rejects(client.files.upload(serverId, blob, { path: '/a/../b' }), refused('invalid_path'))
    await assert.rejects(client.files.upload(serverId, blob, { path: '/' }), refused('invalid_request'))
    const huge = { sizeBytes: 64 * MIB - 1000, read: async () => new Uint8Array(0) }
    await assert.rejects(client.files.upload(serverId, huge, { path: '/huge' }), refused('quota_exceeded'))
    assert.equal(readFileSync(at('taken'), 'utf8'), 'x')
    assert.deepEqual(unfinished(), [])
  })

  test('many small files whose answer is lost are sent again, are there once, and are told of once', async () => {
    let isLost = false
    const losing = async (url: unknown, init?: RequestInit) => {
      const response = await fetch(String(url), init)
      if (isLost || !(init?.body instanceof Blob)) return response
      isLost = true
      throw new TypeError('the answer was lost')
    }
    const { id } = await service.createServer()
    const lossy = createClient({ baseUrl: service.url, token: service.adminToken, fetch: losing })
    const blobs = ['a', 'b', 'c'].map((name) => ({ name: `pack/${name}.txt`, blob: new Blob([name]) }))
    const entries = await lossy.files.uploadMany(id, blobs, { directory: '/mods' })
    assert.ok(isLost)
    assert.deepEqual(
      entries.map(({ path }) => path),
      ['/mods/pack/a.txt', '/mods/pack/b.txt', '/mods/pack/c.txt'],
    )
    assert.deepEqual((await client.files.listTrash(id)).data, [])
    const { data } = await client.activity.list(id, { event: 'file.uploaded' })
    assert.equal(data.length, 1)
  })

  test('a refusal that comes before many small files are sent is reported like any other', async () => {
    writeFileSync(at('taken'), 'old')
    const blob = new Blob([randomBytes(MIB)])
    const blobs = [...Array(20).keys()].map((index) => ({ name: index === 0 ? 'taken' : `new-${index}`, blob }))
    for (let round = 0; round < 20; round++) {
      await assert.rejects(client.files.uploadMany(serverId, blobs, { overwrite: false }), (error) =>
        isApiError(error, 'already_exists'),
      )
    }
    assert.equal(readFileSync(at('taken'), 'utf8'), 'old')
    assert.deepEqual(
      readdirSync(at('')).filter((name) => name.startsWith('new-')),
      [],
    )
  })

  test('a file that changes while it is sent with others is refused, and nothing of them arrives', async () => {
    const local = join(service.dataDir, 'growing.log')
    writeFileSync(local, 'a line\n')
    const blob = await openAsBlob(local)
    writeFileSync(local, 'a line\nand another\n')
    const blobs = [
      { name: 'quiet.txt', blob: new Blob(['quiet']) },
      { name: 'growing.log', blob },
    ]
    await assert.rejects(client.files.uploadMany(serverId, blobs), {
      code: 'precondition_failed',
      detail: /changed or removed/,
    })
    // The service learns of it later than the client does.
    await until(async () => unfinished().length === 0)
    assert.ok(!readdirSync(at('')).some((name) => name === 'quiet.txt' || name === 'growing.log'))
  })

  test('names of many small files arrive as they are', async () => {
    const { id } = await service.createServer()
    const names = ['100%22.txt', '100%.txt', 'ünï ✓.txt', "it's (1)*!.txt", 'a;b=c.txt', 'deep/er/%0d.txt']
    const entries = await client.files.uploadMany(
      id,
      names.map((name) => ({ name, blob: new Blob([name]) })),
    )
    assert.deepEqual(
      entries.map(({ path }) => path),
      names.map((name) => `/${name}`),
    )
  })

  test('connections that are cut again and again do not matter', async () => {
    const bytes = randomBytes(20 * MIB)
    let cuts = 0
    const reader = readerOf(bytes, (count) => {
      if (count % 2 === 0 && cuts < 4) {
        cuts++
        // After the piece has been handed over, while it is on its way.
        setImmediate(() => setImmediate(() => proxy.cut()))
      }
    })
    const seen: number[] = []
    await client.files.upload(serverId, reader, { path: '/cut.bin', onProgress: (done) => seen.push(done) })
    assert.equal(cuts, 4)
    assert.equal(seen.at(-1), bytes.length)
    assert.deepEqual(readFileSync(at('cut.bin')), bytes)
  })

  test('a restart of the service in the middle does not matter', async () => {
    const bytes = randomBytes(13 * MIB)
    let restarts = 0
    const reader = readerOf(bytes, async (count) => {
      if (count === 2) {
        restarts++
        await service.restart()
      }
    })
    await client.files.upload(serverId, reader, { path: '/restarted.bin' })
    assert.equal(restarts, 1)
    assert.deepEqual(readFileSync(at('restarted.bin')), bytes)
  })

  test('Stopped by its signal it takes back what it has sent.', async () => {
    const stop = new AbortController()
    const bytes = randomBytes(10 * MIB)
    const reader = readerOf(bytes, (count) => {
      if (count === 2) stop.abort(new Error('enough'))
    })
    await assert.rejects(client.files.upload(serverId, reader, { path: '/never', signal: stop.signal }), /enough/)
    const shrunk = { sizeBytes: 10 * MIB, read: async (from: number) => bytes.subarray(from, 5 * MIB) }
    await assert.rejects(client.files.upload(serverId, shrunk, { path: '/never' }), /was changed/)
    assert.deepEqual(unfinished(), [])
    assert.ok(!readdirSync(at('')).includes('never'))
    assert.equal((await client.files.usage(serverId)).reservedBytes, 0)
  })

  test('an upload that nobody has ended, as in a page that was reloaded, goes on from where it was', async () => {
    const bytes = randomBytes(9 * MIB)
    let url = ''
    const left = Promise.withResolvers<never>()
    const stalling = readerOf(bytes, (count) => (count === 2 ? left.promise : undefined))
    const onCreated = (created: string) => {
      url = created
    }
    const second = Promise.withResolvers<void>()
    const onProgress = () => second.resolve()
    const abandoned = client.files.upload(serverId, stalling, { path: '/reloaded.bin', onCreated, onProgress })
    await second.promise
    const read: number[] = []
    const source: ChunkReader = {
      sizeBytes: bytes.length,
      async read(from, to) {
        read.push(from)
        return bytes.subarray(from, to)
      },
    }
    await client.files.upload(serverId, source, { path: '/reloaded.bin', resume: url })
    assert.deepEqual(readFileSync(at('/reloaded.bin')), bytes)
    assert.equal(read[0], 4 * MIB)
    left.reject(new Error('The page is gone.'))
    await assert.rejects(abandoned)
    assert.deepEqual(readFileSync(at('/reloaded.bin')), bytes)
    const gone = `${url.slice(0, url.lastIndexOf('/'))}/upl_00000000000000000000000000`
    await assert.rejects(client.files.upload(serverId, source, { path: '/reloaded.bin', resume: gone }), (error) =>
      isApiError(error, 'not_found'),
    )
  })

  test('a service that stays away is an error after the retries, not a wait for ever', async () => {
    const reader = readerOf(randomBytes(6 * MIB), async (count) => {
      if (count === 2) await service.halt()
    })
    const options = { path: '/away', retries: 2 }
    await assert.rejects(client.files.upload(serverId, reader, options), (error) => error instanceof TransportError)
    await service.restart()
  })
})

describe('downloads', () => {
  const bytes = randomBytes(20 * MIB)
  before(() => writeFileSync(at('world.zip'), bytes))

  test('a file with its name, size and tag; an empty one too', async () => {
    const { name, sizeBytes, etag, bytes: stream } = await client.files.download(serverId, '/world.zip')
    assert.deepEqual([name, sizeBytes], ['world.zip', bytes.length])
    assert.match(etag ?? '', /^"/)
    assert.deepEqual(await collect(stream), bytes)
    const empty = await client.files.download(serverId, '/deep/er/empty')
    assert.deepEqual([empty.sizeBytes, (await collect(empty.bytes)).length], [0, 0])
    await assert.rejects(client.files.download(serverId, '/nowhere'), (error) => isApiError(error, 'not_found'))
  })

  test('cut and restarted in the middle, it goes on from where it was', async () => {
    const progress: number[] = []
    const { bytes: stream } = await client.files.download(serverId, '/world.zip', {
      onProgress: (done) => progress.push(done),
    })
    const got = await collect(stream, async (count) => {
      if (count === 3 || count === 40) proxy.cut()
      if (count === 20) await service.restart()
    })
    assert.deepEqual(got, bytes)
    assert.deepEqual(
      progress,
      progress.toSorted((a, b) => a - b),
    )
    assert.equal(progress.at(-1), bytes.length)
  })

  test('a connection that has fallen silent is made anew', async () => {
    const { bytes: stream } = await client.files.download(serverId, '/world.zip', { silenceMs: 300 })
    const got = await collect(stream, (count) => {
      if (count === 3) proxy.freeze()
    })
    assert.deepEqual(got, bytes)
    // Those that are kept for the next request are frozen too.
    proxy.cut()
  })

  test('bytes goes on from where it was after a break as long as the file is the same version, fails with precondition_failed when it is not, and never ends early.', async () => {
    writeFileSync(at('changing'), randomBytes(8 * MIB))
    const { bytes: stream } = await client.files.download(serverId, '/changing')
    const reading = collect(stream, (count) => {
      if (count !== 2) return
      writeFileSync(at('changing'), randomBytes(8 * MIB))
      proxy.cut()
    })
    await assert.rejects(reading, (error) => isApiError(error, 'precondition_failed'))
  })

  test('a folder comes as an archive; when it breaks off that is an error', async () => {
    const { name, sizeBytes, bytes: whole } = await client.files.download(serverId, '/a', { format: 'tar.zst' })
    assert.deepEqual([name, sizeBytes], ['a.tar.zst', null])
    assert.ok((await collect(whole)).length > 300_000)
    const { bytes: broken } = await client.files.download(serverId, '/', { format: 'tar' })
    const reading = collect(broken, (count) => {
      if (count === 2) proxy.cut()
    })
    await assert.rejects(reading, (error) => error instanceof TransportError)
  })
})
