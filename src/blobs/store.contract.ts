// What every BlobStore must do. An adapter's test calls `blobStoreContract` with a way to make a store and to open it again.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { BlobStore } from './store.ts'

export interface StoreUnderTest {
  store: BlobStore
  /** Opens the same blobs as a new process would after this one died. */
  reopen(): Promise<BlobStore>
  remove(): Promise<void>
}

export function blobStoreContract(label: string, make: () => Promise<StoreUnderTest>): void {
  const withStore = (body: (made: StoreUnderTest) => Promise<void>) => async () => {
    const made = await make()
    try {
      await body(made)
    } finally {
      await made.remove()
    }
  }

  describe(`blob store: ${label}`, () => {
    it(
      'gives back what was put, whole and by range, also when opened again',
      withStore(async ({ store, reopen }) => {
        const bytes = randomBytes(300_000)
        await store.put('packs/ab/one', bytes)
        for (const opened of [store, await reopen()]) {
          assert.deepEqual(Buffer.from(await opened.get('packs/ab/one')), bytes)
          const range = await opened.get('packs/ab/one', { offset: 1000, length: 77 })
          assert.deepEqual(Buffer.from(range), bytes.subarray(1000, 1077))
          assert.equal((await opened.get('packs/ab/one', { offset: 299_990, length: 50 })).length, 10)
          assert.equal((await opened.stat('packs/ab/one')).sizeBytes, bytes.length)
        }
      }),
    )

    it(
      'gives several ranges of a blob that was opened once',
      withStore(async ({ store }) => {
        const bytes = randomBytes(300_000)
        await store.put('packs/ab/one', bytes)
        const reader = await store.open('packs/ab/one')
        const into = Buffer.alloc(1000)
        const first = await reader.get({ offset: 5, length: 1000 }, into)
        assert.deepEqual(Buffer.from(first), bytes.subarray(5, 1005))
        assert.equal(first.buffer, into.buffer)
        assert.equal((await reader.get({ offset: 299_990, length: 50 })).length, 10)
        await reader.close()
        await assert.rejects(store.open('packs/ab/two'), { code: 'blob_missing' })
      }),
    )

    it(
      'keeps an empty blob',
      withStore(async ({ store }) => {
        await store.put('empty', new Uint8Array())
        assert.equal((await store.get('empty')).length, 0)
      }),
    )

    it(
      'shows nothing of a blob before its commit, and nothing of an abandoned one after opening again',
      withStore(async ({ store, reopen }) => {
        const writer = await store.create('packs/half')
        await writer.write(randomBytes(10_000))
        await assert.rejects(store.get('packs/half'), { code: 'blob_missing' })
        assert.deepEqual(await names(store, ''), [])
        const again = await reopen()
        assert.deepEqual(await names(again, ''), [])
        await assert.rejects(again.stat('packs/half'), { code: 'blob_missing' })
        await writer.abort()
      }),
    )

    it(
      'keeps the earlier blob when a replacement is aborted, and aborts twice',
      withStore(async ({ store }) => {
        await store.put('state', Buffer.from('old'))
        const writer = await store.create('state')
        await writer.write(Buffer.from('new'))
        await writer.abort()
        await writer.abort()
        assert.equal(Buffer.from(await store.get('state')).toString(), 'old')
        await store.put('state', Buffer.from('newer'))
        assert.equal(Buffer.from(await store.get('state')).toString(), 'newer')
      }),
    )

    it(
      'joins what a writer was given, in order',
      withStore(async ({ store }) => {
        const parts = [randomBytes(5), randomBytes(200_000), randomBytes(1)]
        const writer = await store.create('joined')
        for (const part of parts) await writer.write(part)
        await writer.commit()
        assert.deepEqual(Buffer.from(await store.get('joined')), Buffer.concat(parts))
      }),
    )

    it(
      'deletes for good, and again without complaint',
      withStore(async ({ store, reopen }) => {
        await store.put('packs/ab/one', Buffer.from('1'))
        await store.delete('packs/ab/one')
        await store.delete('packs/ab/one')
        await store.delete('packs/never/there')
        await assert.rejects(store.get('packs/ab/one'), { code: 'blob_missing' })
        assert.deepEqual(await names(await reopen(), ''), [])
      }),
    )

    it(
      'refuses names that are not names',
      withStore(async ({ store }) => {
        for (const name of ['', '../x', 'a/../b', '/a', 'a//b', 'a/', 'A', 'a.b', 'a\0', '.unfinished/x']) {
          await assert.rejects(store.put(name, new Uint8Array()), /not a blob name/)
          await assert.rejects(store.get(name), /not a blob name/)
          await assert.rejects(store.delete(name), /not a blob name/)
        }
      }),
    )

    it('lists exactly what a map would hold after any sequence of puts and deletes', async () => {
      const step = fc.record({
        name: fc.constantFrom('a', 'b/c', 'b/d', 'b/e/f', 'b2'),
        bytes: fc.option(fc.uint8Array({ maxLength: 40 })),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
          const made = await make()
          try {
            const model = new Map<string, Uint8Array>()
            for (const { name, bytes } of steps) {
              if (bytes) await made.store.put(name, bytes)
              else await made.store.delete(name)
              if (bytes) model.set(name, bytes)
              else model.delete(name)
            }
            for (const prefix of ['', 'b', 'b/', 'b/e/']) {
              const expected = [...model.keys()].filter((name) => name.startsWith(prefix)).sort()
              assert.deepEqual(await names(made.store, prefix), expected)
            }
            for (const [name, bytes] of model) {
              assert.deepEqual(Buffer.from(await made.store.get(name)), Buffer.from(bytes))
            }
          } finally {
            await made.remove()
          }
        }),
        { numRuns: 25 },
      )
    })
  })
}

async function names(store: BlobStore, prefix: string): Promise<string[]> {
  const found: string[] = []
  for await (const { name } of store.list(prefix)) found.push(name)
  return found.sort()
}
