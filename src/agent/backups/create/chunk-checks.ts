// Compares the chunks of the last manifest with the tree, some of them ahead of whoever asks: here, a little in each turn of the
// event loop, and meanwhile in other threads.
import { availableParallelism } from 'node:os'
import type { Turns } from '../../../kit/waiting/turns.ts'
import type { Directory } from '../../files/sandbox/directory.ts'
import type { Chunk, StoredEntry } from '../format/entries.ts'
import { decodeEntries } from '../format/entry-decoder.ts'
import type { Manifest } from '../format/manifest.ts'
import { type ComparedTree, openComparison, type Verdict } from '../tree/same-chunk.ts'
import type { Pool } from '../workers/pool.ts'

/** Entries. Where there are more, other threads do it all, and are started for it (`npm run bench -- backups`, `unchanged`). */
const MUCH = 20_000
/** What is compared in one go, at least. */
const ENTRIES_AT_ONCE = 500
/** The same, where there is much. */
const MANY_AT_ONCE = 2000
const BYTES_AT_ONCE = 512 * 1024
/** Begun and not asked for yet. */
const AHEAD = 8
/** Looked at here before the turn may end. */
const A_STEP = 16

export interface Compared {
  chunk: Chunk
  verdict: Verdict
}

export interface ChunkChecks extends Disposable {
  /** To be asked for in ascending order. Undefined where there is no such chunk, or it cannot be read. */
  compared(index: number): Promise<Compared | undefined>
  /** As that of the manifest; what was compared is not read again. */
  chunkAt(index: number): Promise<StoredEntry[]>
}

export interface ChunkChecksDeps {
  /** Of the tree. */
  top: Directory
  dev: bigint
  previous: Manifest
  pool: Pick<Pool, 'compare' | 'lookers'>
  turn: Turns
}

/** Some chunks that follow each other. */
interface Begun {
  from: number
  end: number
  /** None where one of them cannot be read. */
  read: Promise<Chunk[]>
  verdicts: Promise<Verdict[]>
}

type Lane = (chunks: readonly Chunk[]) => Promise<Verdict[]>

export function createChunkChecks({ top, dev, previous, pool, turn }: ChunkChecksDeps): ChunkChecks {
  const { places } = previous
  const isMuch = places.reduce((sum, place) => sum + place.entryCount, 0) >= MUCH
  const entriesAtOnce = isMuch ? MANY_AT_ONCE : ENTRIES_AT_ONCE
  const tree: ComparedTree = { address: top.address, dev }
  /** In their order; those that were passed are gone. */
  const begun: Begun[] = []
  /** Those that have nothing to do. */
  const idle = isMuch ? elsewhere(2 * availableParallelism()) : [here, ...elsewhere(availableParallelism() - 1)]
  let next = 0
  let reading: Promise<unknown> = Promise.resolve()
  let onLane = () => {}

  async function here(chunks: readonly Chunk[]): Promise<Verdict[]> {
    const verdicts: Verdict[] = []
    for (const { raw } of chunks) {
      using comparison = openComparison(tree, raw)
      let verdict: Verdict | undefined
      while (verdict === undefined) {
        if (turn.due()) await turn.take()
        verdict = comparison.step(A_STEP)
      }
      verdicts.push(verdict)
    }
    return verdicts
  }

  function elsewhere(count: number): Lane[] {
    if (!isMuch && !pool.lookers.areStarted()) return []
    // Their own bytes alone: those that share their memory would be copied to the thread as well.
    const lane: Lane = (chunks) => pool.compare({ tree, chunks: chunks.map(({ raw }) => new Uint8Array(raw)) })
    return Array.from({ length: count }, () => lane)
  }

  function endOf(from: number): number {
    let [entries, bytes, end] = [0, 0, from]
    for (let place = places[end]; place && entries < entriesAtOnce && bytes < BYTES_AT_ONCE; place = places[++end]) {
      entries += place.entryCount
      bytes += place.rawLength
    }
    return end
  }

  /** One after another, as they lie in their blobs. */
  async function readChunks(from: number, end: number): Promise<Chunk[]> {
    const chunks: Chunk[] = []
    for (let index = from; index < end; index++) chunks.push(await previous.readChunk(index))
    return chunks
  }

  function begin(lane: Lane): void {
    const from = next
    const end = endOf(from)
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
    begun.push({ from, end, read, verdicts })
  }

  function fill(): void {
    while (begun.length < AHEAD && next < places.length) {
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
      next = places.length
    },
  }
}
