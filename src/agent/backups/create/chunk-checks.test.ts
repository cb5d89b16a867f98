import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openRoot } from '../../files/sandbox/directory.ts'
import type { Chunk, ChunkPlace } from '../format/entries.ts'
import { NO_ENTRIES } from '../format/entries.ts'
import type { Verdict } from '../tree/same-chunk.ts'
import type { Pool } from '../workers/pool.ts'
import { createChunkChecks } from './chunk-checks.ts'

const CHUNKS = 100
const CHUNK_BYTES = 1000

interface Fakes {
  entryCount?: number
  rawLength?: number
  compare(indexes: number[]): Promise<Verdict[]>
}

/** Of a manifest whose chunks hold nothing but their own index: one of which nothing is expected is as it was. */
function checksOf(t: TestContext, { entryCount = 500, rawLength = CHUNK_BYTES, compare }: Fakes) {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-checks-'))
  const top = openRoot(folder)
  t.after(() => {
    top[Symbol.dispose]()
    rmSync(folder, { recursive: true })
  })
  const rest = { offset: 0, storedLength: 0, codec: 0, crc: 0, first: '' }
  const places: ChunkPlace[] = Array.from({ length: CHUNKS }, () => ({ ...rest, rawLength, entryCount }))
  const read: number[] = []
  const previous = {
    places,
    async readChunk(index: number): Promise<Chunk> {
      read.push(index)
      const raw = Buffer.alloc(4)
      raw.writeUInt32LE(index)
      return { raw, stored: raw, place: places[index] as ChunkPlace, part: undefined }
    },
    chunkAt: () => Promise.reject(new Error('nothing is read twice')),
  }
  const pool: Pick<Pool, 'compare' | 'lookers' | 'width'> = {
    width: 5,
    lookers: { areStarted: () => true, look: () => Promise.reject(new Error('nobody looks')) },
    compare: ({ chunks }) => compare(chunks.map((raw) => Buffer.from(raw).readUInt32LE())),
  }
  const turn = { due: () => false, take: async () => {} }
  return { read, checks: createChunkChecks({ top, dev: 0n, previous, chunkBytes: CHUNK_BYTES, pool, turn }) }
}

const verdictOf = (index: number): Verdict =>
  index % 3 === 0 ? null : { counts: { ...NO_ENTRIES, fileCount: index }, changed: [] }

test('each chunk has its own verdict, in whatever order the threads answer', async (t) => {
  const waiting: (() => void)[] = []
  let most = 0
  const { read, checks } = checksOf(t, {
    compare: (indexes) =>
      new Promise((resolve) => {
        waiting.push(() => resolve(indexes.map(verdictOf)))
        most = Math.max(most, waiting.length)
        // The last one that was asked answers first.
        setImmediate(() => waiting.pop()?.())
      }),
  })
  for (let index = 0; index < CHUNKS; index += index === 20 ? 30 : 1) {
    const compared = await checks.compared(index)
    assert.deepEqual(compared?.verdict, verdictOf(index), `${index}`)
    assert.equal(compared?.chunk.raw.readUInt32LE(), index)
  }
  assert.equal(await checks.compared(CHUNKS), undefined)
  assert.equal(most, 4)
  assert.deepEqual(
    read,
    read.toSorted((a, b) => a - b),
  )
})

test('what a thread that has ended was asked for is not known, and what comes after is', async (t) => {
  let isFirst = true
  const { checks } = checksOf(t, {
    async compare(indexes) {
      if (!isFirst) return indexes.map(verdictOf)
      isFirst = false
      throw new Error('a worker thread ended')
    },
  })
  assert.equal(await checks.compared(0), undefined)
  assert.deepEqual((await checks.compared(7))?.verdict, verdictOf(7))
})

test('no more is read ahead than a few groups, and nothing once it has ended', async (t) => {
  const { read, checks } = checksOf(t, {
    rawLength: 50 * CHUNK_BYTES,
    compare: async (indexes) => indexes.map(verdictOf),
  })
  await checks.compared(0)
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(read.length <= 3, `${read.length} chunks`)
  checks[Symbol.dispose]()
  const before = read.length
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(read.length <= before + 1)
})
