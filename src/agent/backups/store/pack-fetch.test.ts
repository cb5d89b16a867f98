import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { asCopy } from '../../../blobs/layered.ts'
import type { BlobStore, ByteRange } from '../../../blobs/store.ts'
import { createPackFetches, type PackFetch, type WantedRange } from './pack-fetch.ts'

const PACK_BYTES = 4 * 1024 * 1024

/** Packs of random bytes, and every request for them. */
function countedStore(get?: (name: string, range: ByteRange) => Promise<void>) {
  const packs = new Map<string, Buffer>()
  const requests: { name: string; range: ByteRange }[] = []
  const packOf = (name: string) => {
    const bytes = packs.get(name) ?? randomBytes(PACK_BYTES)
    packs.set(name, bytes)
    return bytes
  }
  const store = {
    async get(name: string, range: ByteRange, into: Uint8Array) {
      requests.push({ name, range })
      await get?.(name, range)
      const bytes = packOf(name).subarray(range.offset, range.offset + range.length)
      return into.subarray(0, bytes.copy(into))
    },
  } as unknown as BlobStore
  return { store: asCopy(store), requests, packOf }
}

const range = (offset: number, length = 1000): WantedRange => ({ offset, length, uses: 1 })

async function bytesOf(fetch: PackFetch, packId: string, wanted: WantedRange): Promise<Buffer> {
  return await fetch.read(packId, [wanted], async (fetched) => {
    const part = fetched.find(({ offset, length }) => offset <= wanted.offset && wanted.offset < offset + length)
    assert.ok(part)
    const from = part.at + wanted.offset - part.offset
    return Buffer.from(Buffer.from(part.bytes, from, wanted.length))
  })
}

it('fetches what is expected of a pack with the first of it, and only that', async () => {
  const { store, requests, packOf } = countedStore()
  using fetch = createPackFetches(store).begin()
  const wanted = [range(0), range(1000), range(50_000), range(3_000_000)]
  for (const one of wanted) fetch.expect('pack', one)
  for (const one of wanted) {
    const expected = packOf('packs/pa/pack').subarray(one.offset, one.offset + one.length)
    assert.deepEqual(await bytesOf(fetch, 'pack', one), expected)
  }
  // What lies close together is one request, what is far away another.
  assert.deepEqual(
    requests.map((request) => request.range).sort((a, b) => a.offset - b.offset),
    [
      { offset: 0, length: 51_000 },
      { offset: 3_000_000, length: 1000 },
    ],
  )
})

it('what goes with a pack comes along where it lies beside the rest, and is not asked for by itself', async () => {
  const { store, requests } = countedStore()
  using fetch = createPackFetches(store, () => ({ offset: 3_000_000, length: 500 })).begin()
  await bytesOf(fetch, 'far', range(0))
  await bytesOf(fetch, 'near', range(2_700_000))
  assert.deepEqual(
    requests.map((request) => request.range),
    [
      { offset: 0, length: 1000 },
      { offset: 2_700_000, length: 300_500 },
    ],
  )
})

it('what is expected may come before it is read, and is not fetched again', async () => {
  const begun = new Set<string>()
  const areBegun = Promise.withResolvers<void>()
  const { store, requests } = countedStore(async (name) => {
    if (begun.add(name).size === 2) areBegun.resolve()
  })
  using fetch = createPackFetches(store).begin()
  for (const pack of ['a', 'b', 'c']) fetch.expect(pack, range(0))
  fetch.start()
  await areBegun.promise
  assert.deepEqual([...begun], ['packs/a/a', 'packs/b/b'])
  for (const pack of ['a', 'b', 'c']) await bytesOf(fetch, pack, range(0))
  assert.equal(requests.length, 3)
})

it('what failed to come early is asked for as if it had not been tried', async () => {
  let isBroken = true
  const failed = Promise.withResolvers<void>()
  const { store, requests } = countedStore(async () => {
    if (!isBroken) return
    failed.resolve()
    throw new Error('connection reset')
  })
  using fetch = createPackFetches(store).begin()
  const wanted = Array.from({ length: 20 }, (_, index) => range(index * 1000))
  for (const one of wanted) fetch.expect('pack', one)
  fetch.start()
  await failed.promise
  isBroken = false
  requests.length = 0
  for (const one of wanted) await bytesOf(fetch, 'pack', one).catch(() => bytesOf(fetch, 'pack', one))
  assert.equal(requests.length, 1)
})

it('where several read at once nothing comes early: it would be given up for the others and fetched again', async () => {
  const { store, requests } = countedStore()
  const fetches = createPackFetches(store)
  using _other = fetches.begin()
  using fetch = fetches.begin()
  fetch.expect('a', range(0))
  fetch.start()
  await bytesOf(fetch, 'b', range(0))
  assert.deepEqual(
    requests.map(({ name }) => name),
    ['packs/b/b', 'packs/a/a'],
  )
})

it('memory into which something comes after the last session has ended is given back', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const answer = Promise.withResolvers<void>()
  const { store } = countedStore(() => answer.promise)
  const made: WeakRef<SharedArrayBuffer>[] = []
  const { SharedArrayBuffer: Real } = globalThis
  globalThis.SharedArrayBuffer = class extends Real {
    constructor(bytes: number) {
      super(bytes)
      made.push(new WeakRef(this))
    }
  } as SharedArrayBufferConstructor
  t.after(() => {
    globalThis.SharedArrayBuffer = Real
  })
  const fetches = createPackFetches(store)
  {
    using fetch = fetches.begin()
    for (const pack of ['a', 'b']) fetch.expect(pack, range(0))
    fetch.start()
    await immediate()
    assert.equal(made.length, 2)
  }
  t.mock.timers.tick(10 * 60_000)
  answer.resolve()
  await immediate()
  t.mock.timers.tick(10 * 60_000)
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let count = 0; count < 5; count++) {
    await immediate()
    collect()
  }
  assert.equal(made.filter((memory) => memory.deref()).length, 0)
  assert.ok(fetches)
})

it('fetches the next pack while one is read, and several at once', async () => {
  const { store, requests } = countedStore()
  using fetch = createPackFetches(store).begin()
  const packs = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  for (const pack of packs) fetch.expect(pack, range(0))
  await bytesOf(fetch, 'a', range(0))
  assert.deepEqual(
    requests.map(({ name }) => name),
    ['packs/a/a', 'packs/b/b'],
  )
  await Promise.all(packs.slice(1).map((pack) => bytesOf(fetch, pack, range(0))))
  assert.equal(requests.length, packs.length)
})

it('gives up what will be read last, where memory is short', async () => {
  const { store, requests } = countedStore()
  using fetch = createPackFetches(store).begin()
  // Each has something left when the next is read, more of them than there is room for.
  const packs = Array.from({ length: 40 }, (_, number) => `pack${number}`)
  const [much, rest] = [range(0, 3_000_000), range(3_000_000)]
  for (const pack of packs) fetch.expect(pack, much)
  for (const pack of packs) fetch.expect(pack, rest)
  for (const one of [much, rest]) fetch.expect('late', one)
  for (const pack of packs) await bytesOf(fetch, pack, much)
  await bytesOf(fetch, 'late', much)
  for (const pack of packs) await bytesOf(fetch, pack, rest)
  await bytesOf(fetch, 'late', rest)
  assert.deepEqual(requests.map(({ name }) => name).slice(41), ['packs/pa/pack39'])
})

it('fetches what is read in order from many packs in turn about once', async () => {
  const { store, requests } = countedStore()
  using fetch = createPackFetches(store).begin({ isInOrder: true })
  const packs = Array.from({ length: 30 }, (_, number) => `pack${number}`)
  const reads: [string, WantedRange][] = []
  for (let offset = 0; offset < PACK_BYTES; offset += 64 * 1024)
    for (const pack of packs) {
      reads.push([pack, range(offset, 64 * 1024)])
      // What was read a while ago is read once more.
      if (offset > 0 && reads.length % 7 === 0) reads.push([pack, range(offset - 64 * 1024, 64 * 1024)])
    }
  for (const [pack, one] of reads) fetch.expect(pack, one)
  for (const [pack, one] of reads) await bytesOf(fetch, pack, one)
  const fetched = requests.reduce((sum, { range: { length } }) => sum + length, 0)
  assert.ok(fetched < 1.5 * packs.length * PACK_BYTES, `${fetched} bytes of ${packs.length * PACK_BYTES}`)
  assert.ok(requests.length < 10 * packs.length, `${requests.length} requests`)
})

it('does not fetch what was expected before the place at which reading in order begins', async () => {
  const { store, requests } = countedStore()
  using fetch = createPackFetches(store).begin({ isInOrder: true })
  const packs = Array.from({ length: 30 }, (_, number) => `pack${number}`)
  const reads = packs.flatMap((pack) => [0, 1, 2, 3].map((part) => [pack, range(part * 1_000_000, 1_000_000)] as const))
  for (const [pack, one] of reads) fetch.expect(pack, one)
  const rest = reads.slice(100)
  for (const [pack, one] of rest) {
    await bytesOf(fetch, pack, one)
    // Nobody has expected it.
    await bytesOf(fetch, 'other', range(0))
  }
  const fetched = requests.reduce((sum, { range: { length } }) => sum + length, 0)
  assert.ok(fetched < 1.1 * rest.length * 1_000_000, `${fetched} bytes of ${rest.length * 1_000_000}`)
})

it('comes to an end however many packs are read at once, each with two that have to be there together', async () => {
  const { store, packOf } = countedStore()
  const fetches = createPackFetches(store)
  using fetch = fetches.begin()
  await Promise.all(
    Array.from({ length: 20 }, async (_, number) => {
      const packId = `pack${number}`
      await bytesOf(fetch, packId, range(0))
      // The first part is still there or not: either way both are handed over.
      const both = [range(0), range(2_000_000)]
      const found = await fetch.read(packId, both, async (fetched) =>
        both.map(({ offset, length }) => {
          const part = fetched.find((one) => one.offset <= offset && offset < one.offset + one.length)
          assert.ok(part)
          return Buffer.from(Buffer.from(part.bytes, part.at + offset - part.offset, length))
        }),
      )
      for (const [index, { offset, length }] of both.entries())
        assert.deepEqual(found[index], packOf(`packs/pa/${packId}`).subarray(offset, offset + length))
    }),
  )
})

it('fails as the copy does, and reads on once that answers again', async () => {
  let isBroken = true
  const { store, packOf } = countedStore(async () => {
    if (isBroken) throw new Error('connection reset')
  })
  using fetch = createPackFetches(store).begin()
  fetch.expect('pack', range(0))
  await assert.rejects(bytesOf(fetch, 'pack', range(0)), { code: 'store_unreachable' })
  isBroken = false
  assert.deepEqual(await bytesOf(fetch, 'pack', range(0)), packOf('packs/pa/pack').subarray(0, 1000))
})
