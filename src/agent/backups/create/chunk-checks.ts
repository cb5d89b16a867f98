// Compares the chunks of the last manifest with the tree, some of them ahead of whoever asks: here, a little in each turn of the
// event loop, and meanwhile in other threads.
import type { Turns } from '../../../kit/waiting/turns.ts'
import type { Directory } from '../../files/sandbox/directory.ts'
import type { Chunk, StoredEntry } from '../format/entries.ts'
import { decodeEntries } from '../format/entry-decoder.ts'
import type { Manifest } from '../format/manifest.ts'
import { type ComparedTree, openComparison, type Verdict } from '../tree/same-chunk.ts'
import type { Pool } from '../workers/pool.ts'

/** Entries. Where there are more, other threads do it all, and are started for it (`npm run bench -- backups`, `unchanged`). */
const MUCH = 20_000
/** What is compared in one go, at least: entries, and chunks that are full. */
const ENTRIES_AT_ONCE = 500
/** The same, where there is much. */
const MANY_AT_ONCE = 1000
const CHUNKS_AT_ONCE = 8
/** Groups that are begun and not asked for yet. They have no more bytes than as many groups of full chunks. */
const AHEAD = 8

interface Compared {
  chunk: Chunk
  verdict: Verdict
}

export interface ChunkChecks extends Disposable {
  /** To be asked for in ascending order. Undefined where there is no such chunk, or it cannot be read. */
  compared(index: number): Promise<Compared | undefined>
  /** As that of the manifest; what was compared is not read again. */
  chunkAt(index: number): Promise<StoredEntry[]>
}

interface ChunkChecksDeps {
  /** Of the tree. */
  top: Directory
  dev: bigint
  previous: Pick<Manifest, 'places' | 'readChunk' | 'chunkAt'>
  /** Of a chunk that is full. */
  chunkBytes: number
  pool: Pick<Pool, 'compare' | 'lookers' | 'width'>
  turn: Turns
}

/** Some chunks that follow each other. */
interface Begun {
  from: number
  end: number
  bytes: number
  /** None where one of them cannot be read. */
  read: Promise<Chunk[]>
  verdicts: Promise<Verdict[]>
}

type Lane = (chunks: readonly Chunk[]) => Promise<Verdict[]>

export function createChunkChecks({ top, dev, previous, chunkBytes, pool, turn }: ChunkChecksDeps): ChunkChecks {
  const { places } = previous
  const isMuch = places.reduce((sum, place) => sum + place.entryCount, 0) >= MUCH
  const entriesAtOnce = isMuch ? MANY_AT_ONCE : ENTRIES_AT_ONCE
  const bytesAtOnce = CHUNKS_AT_ONCE * chunkBytes
  const tree: ComparedTree = { address: top.address, dev }
  /** In their order; those that were passed are gone. */
  const begun: Begun[] = []
  /** Those that have nothing to do. */
  const idle = isMuch ? elsewhere(pool.width - 1) : [here, ...elsewhere((pool.width - 1) / 2 - 1)]
  let next = 0
  let reading: Promise<unknown> = Promise.resolve()
  let onLane = () => {}
  let isEnded = false

  async function here(chunks: readonly Chunk[]): Promise<Verdict[]> {
    const verdicts: Verdict[] = []
    for (const { raw } of chunks) {
      using comparison = openComparison(tree, raw)
      let verdict: Verdict | undefined
      while (verdict === undefined) {
        if (turn.due()) await turn.take()
        verdict = comparison.step(1)
      }
      verdicts.push(verdict)
    }
    return verdicts
  }

  function elsewhere(count: number): Lane[] {
    if (!isMuch && !pool.lookers.areStarted()) return []
    const lane: Lane = async (chunks) => {
      if (chunks.some(({ raw }) => raw.length > bytesAtOnce)) return here(chunks)
      // Their own bytes alone: those that share their memory would be copied to the thread as well.
      const compared = pool.compare({ tree, chunks: chunks.map(({ raw }) => new Uint8Array(raw)) })
      // A thread that has ended knows nothing.
      return compared.catch(() => [])
    }
    return Array.from({ length: Math.max(1, count) }, () => lane)
  }

  function groupFrom(from: number): { end: number; bytes: number } {
    let [entries, bytes, end] = [0, 0, from]
    for (let place = places[end]; place && entries < entriesAtOnce && bytes < bytesAtOnce; place = places[++end]) {
      entries += place.entryCount
      bytes += place.rawLength
    }
    return { end, bytes }
  }

  /** One after another, as they lie in their blobs. */
  async function readChunks(from: number, end: number): Promise<Chunk[]> {
    const chunks: Chunk[] = []
    for (let index = from; index < end && !isEnded; index++) chunks.push(await previous.readChunk(index))
    return chunks
  }

  function begin(lane: Lane): void {
    const from = next
    const { end, bytes } = groupFrom(from)
    next = end
    // Whoever needs what cannot be read reads it again, and is told why.
    const read = reading.then(() => readChunks(from, end)).catch(() => [])
    reading = read
    const verdicts = read.then((chunks) => top.use(() => lane(chunks)))
    const ended = () => {
      idle.push(lane)
      fill()
      onLane()
    }
    verdicts.then(ended, ended)
    begun.push({ from, end, bytes, read, verdicts })
  }

  const isMuchAhead = () => begun.reduce((sum, { bytes }) => sum + bytes, 0) > AHEAD * bytesAtOnce

  function fill(): void {
    while (!isEnded && begun.length < AHEAD && next < places.length && !isMuchAhead()) {
      const lane = idle.shift()
      if (!lane) return
      begin(lane)
    }
  }

  const begunFor = (index: number) => begun.find(({ from, end }) => from <= index && index < end)

  return {
    async compared(index) {
      while (begun[0] && begun[0].end <= index) begun.shift()
      next = Math.max(next, index)
      fill()
      // All of them are still at what lies before.
      while (next < places.length && !begunFor(index)) await new Promise<void>((resolve) => (onLane = resolve))
      const found = begunFor(index)
      if (!found) return undefined
      const verdict = (await found.verdicts)[index - found.from]
      const chunk = (await found.read)[index - found.from]
      return chunk && verdict !== undefined ? { chunk, verdict } : undefined
    },
    async chunkAt(index) {
      const found = begunFor(index)
      const chunk = (await found?.read)?.[index - (found?.from ?? 0)]
      return chunk ? decodeEntries(chunk) : previous.chunkAt(index)
    },
    [Symbol.dispose]() {
      isEnded = true
    },
  }
}
