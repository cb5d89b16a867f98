// Reads parts of packs from the off-site copy into memory that the worker threads share. What a restore will want of a pack is
// known in advance, so all of it comes with the first of it, mostly in one request, while what came before is decoded. A
// download, which reads everything in order, gets what it will read soon. Memory is bounded whatever is read.
import type { BlobStore, ByteRange } from '../../../blobs/store.ts'
import { asBuffer } from '../../../kit/bytes.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { packBlob } from '../format/format.ts'
import type { FetchedRange } from '../workers/worker-jobs.ts'
import {
  addTurns,
  consume,
  distanceOf,
  expectOf,
  nextOf,
  type Ranges,
  rangesIn,
  type Session,
  takeAll,
  takeNearest,
  type WantedRange,
} from './expected-ranges.ts'

export type { WantedRange }

/**
 * Whole packs in memory at one time. The one with what has changed lately is needed all along: with one fewer it was given
 * up and fetched again for every fifth of the others (`npm run bench -- offsite`).
 */
const SLOTS = 5
/** A whole pack: 32 MiB, what the last write to it has beyond that, and its table. */
const SLOT_BYTES = 40 * 1024 * 1024
/** All of them, and those that are smaller. */
const MEMORY_BYTES = SLOTS * SLOT_BYTES
/** For little of a pack. A file that was often changed is in many packs, and is read piece by piece from all of them. */
const SMALLEST_SLOT_BYTES = SLOT_BYTES / 16
/** To fetch what lies between two parts takes no longer than a request of its own would. */
const GAP_BYTES = 512 * 1024
/** How long memory that nobody uses is kept. */
const KEPT_MS = 30_000
/** More would keep the first one, with which the work begins, waiting (`npm run bench -- offsite`). */
const STARTED_AT_ONCE = 2
/** Of the parts of one pack. */
const REQUESTS_AT_ONCE = 6

export interface PackFetch extends Disposable {
  /** Will be read before long: it comes with what else is wanted of the pack. Only saves requests. */
  expect(packId: string, range: WantedRange): void
  /** All has been expected: the first of it may come already. */
  start(): void
  /** What it hands to `work` is good until that has ended. Throws `BlobMissing`, and `StoreUnreachable`. */
  read<T>(packId: string, ranges: WantedRange[], work: (fetched: FetchedRange[]) => Promise<T>): Promise<T>
}

export interface PackFetches {
  /** For one restore, download or verify. `isInOrder`: all of it is read in the order in which it was expected. */
  begin(options?: { isInOrder?: boolean }): PackFetch
}

/** What was fetched of one pack at one time. */
interface Entry {
  session: Session
  packId: string
  /** Where the parts will be; `slot` holds them once `ready` has resolved. */
  parts: { offset: number; length: number; at: number }[]
  slot: SharedArrayBuffer | undefined
  ready: Promise<void>
  /** What nobody has read yet. */
  left: Ranges
  /** Who waits for it or reads from it. */
  pins: number
}

/** `copy` is one of `asCopy`. `spansOf`: what comes with the rest of a pack, where it lies beside it. */
export function createPackFetches(
  copy: BlobStore,
  spansOf: (packId: string) => ByteRange | undefined = () => undefined,
): PackFetches {
  const free: SharedArrayBuffer[] = []
  const entries = new Set<Entry>()
  /** In bytes, of those in use and those that are free. */
  let made = 0
  let sessions = 0
  /** Those who fetch into a slot or read from one: they end by themselves. */
  let busy = 0
  let changed: PromiseWithResolvers<void> | undefined

  function wake(): void {
    changed?.resolve()
    changed = undefined
  }

  function release(entry: Entry): void {
    entries.delete(entry)
    if (entry.slot && entry.slot.byteLength <= SLOT_BYTES) free.push(entry.slot)
    else if (entry.slot) made -= entry.slot.byteLength
    entry.slot = undefined
    if (sessions === 0 && free.length > 0) giveBackSoon()
    wake()
  }

  /** Not at once: what worker threads have seen of it is given back late, and the next one would take as much again. */
  function giveBackSoon(): void {
    const timer = setTimeout(() => {
      if (sessions === 0) giveBack()
    }, KEPT_MS)
    timer.unref()
  }

  function giveBack(): void {
    for (const slot of free) made -= slot.byteLength
    free.length = 0
  }

  /** Undefined where there is none of that size. */
  function takeFree(size: number): SharedArrayBuffer | undefined {
    const found = free.findIndex((slot) => slot.byteLength === size)
    return found < 0 ? undefined : free.splice(found, 1)[0]
  }

  /** What is still expected of it comes together again when it is fetched anew. */
  function evict(entry: Entry): void {
    const { session, packId, left } = entry
    for (const range of left.values()) addTurns(rangesIn(session, packId), range)
    release(entry)
  }

  /** The one that will be read last of all that nobody reads now. */
  function idleEntry(): Entry | undefined {
    const distance = ({ left, session }: Entry) => distanceOf(left, session)
    let found: Entry | undefined
    for (const entry of entries)
      if (entry.pins === 0 && entry.slot && (!found || distance(entry) > distance(found))) found = entry
    return found
  }

  /** Whoever has taken it counts as busy. Whoever waits here may hold another pack. Where all do, and nothing can be let go of, there is one slot more. */
  async function takeSlot(bytes: number): Promise<SharedArrayBuffer> {
    const size = slotBytesFor(bytes)
    for (;;) {
      const slot = takeFree(size)
      if (slot) {
        busy++
        return slot
      }
      // Free ones of the other size make room.
      if (made + size > MEMORY_BYTES) giveBack()
      const hasRoom = made + size <= MEMORY_BYTES
      const idle = hasRoom ? undefined : idleEntry()
      if (idle) evict(idle)
      else if (hasRoom || busy === 0) {
        made += size
        busy++
        return new SharedArrayBuffer(size)
      } else {
        changed ??= Promise.withResolvers()
        await changed.promise
      }
    }
  }

  async function fill(entry: Entry): Promise<void> {
    const slot = await takeSlot(entry.parts.reduce((sum, { length }) => sum + length, 0))
    entry.slot = slot
    const name = packBlob(entry.packId)
    try {
      await forEachAtOnce(entry.parts, REQUESTS_AT_ONCE, async (part) => {
        const into = Buffer.from(slot, part.at, part.length)
        const bytes = await copy.get(name, { offset: part.offset, length: part.length }, into)
        if (bytes.buffer !== slot) asBuffer(bytes).copy(into)
        // Shorter than it was: what is missing is found to be damaged.
        part.length = bytes.length
      })
    } finally {
      busy--
      // After those who have waited for it have begun to read.
      setImmediate(wake)
    }
  }

  function start(session: Session, packId: string, ranges: readonly WantedRange[]): Entry {
    const left = session.isInOrder ? takeNearest(session, packId, ranges) : takeAll(session, packId, ranges)
    const parts = joined([...left.values()], spansOf(packId))
    const entry: Entry = { session, packId, parts, slot: undefined, ready: Promise.resolve(), left, pins: 1 }
    entries.add(entry)
    entry.ready = fill(entry).catch((error: unknown) => {
      if (session.isClosed) release(entry)
      else evict(entry)
      throw error
    })
    entry.ready.catch(() => {})
    return entry
  }

  /** So that the next pack comes while this one is decoded. */
  function startNext(session: Session): void {
    const used = made - free.reduce((sum, { byteLength }) => sum + byteLength, 0)
    if (used + SLOT_BYTES > MEMORY_BYTES) return
    const next = nextOf(session)
    if (next === undefined) return
    const entry = start(session, next, [])
    void entry.ready.then(
      () => unpin(entry),
      () => {},
    )
  }

  function unpin(entry: Entry): void {
    entry.pins--
    // Whoever waits for a slot may find that nobody is busy any more.
    if (entry.pins > 0 || !entries.has(entry)) {
      wake()
      return
    }
    if (entry.left.size > 0 && !entry.session.isClosed) wake()
    else release(entry)
  }

  /** Those that have something of what is wanted, held until they are unpinned. */
  function pin(session: Session, packId: string, ranges: readonly WantedRange[]): Entry[] {
    const isWanted = (entry: Entry) =>
      entry.session === session && entry.packId === packId && ranges.some((range) => covers(entry, range))
    const pinned = [...entries].filter(isWanted)
    for (const entry of pinned) entry.pins++
    const missing = ranges.filter((range) => !pinned.some((entry) => covers(entry, range)))
    if (missing.length === 0) return pinned
    pinned.push(start(session, packId, missing))
    startNext(session)
    return pinned
  }

  function begin({ isInOrder = false }: { isInOrder?: boolean } = {}): PackFetch {
    const session: Session = { expected: new Map(), turns: 0, lastTurn: 0, isInOrder, isClosed: false }
    sessions++
    return {
      expect: (packId, range) => expectOf(session, packId, range),
      start() {
        // What came early would be given up for what others read, and fetched again.
        if (sessions > 1) return
        for (let count = 0; count < STARTED_AT_ONCE; count++) startNext(session)
      },
      async read(packId, ranges, work) {
        const pinned = pin(session, packId, ranges)
        try {
          for (const entry of pinned) await entry.ready
          busy++
          try {
            return await work(pinned.flatMap(fetchedOf))
          } finally {
            busy--
          }
        } finally {
          for (const entry of pinned) {
            for (const range of ranges) consume(entry.left, range, session)
            unpin(entry)
          }
        }
      },
      [Symbol.dispose]() {
        if (session.isClosed) return
        session.isClosed = true
        sessions--
        if (made > 0) giveBackSoon()
        session.expected.clear()
        for (const entry of [...entries]) if (entry.session === session && entry.pins === 0) release(entry)
      },
    }
  }

  return { begin }
}

/** Of a few sizes, so that most are used again. */
function slotBytesFor(bytes: number): number {
  let size = Math.max(SLOT_BYTES, bytes)
  while (size > SMALLEST_SLOT_BYTES && size / 2 >= bytes) size /= 2
  return size
}

const fetchedOf = ({ parts, slot }: Entry): FetchedRange[] =>
  slot ? parts.map((part) => ({ ...part, bytes: slot })) : []

function covers({ parts }: Entry, { offset, length }: ByteRange): boolean {
  return parts.some((part) => part.offset <= offset && offset + length <= part.offset + part.length)
}

/** In the order of the pack; those with little between them become one. `spans` cost no request of their own. */
function joined(ranges: readonly ByteRange[], spans: ByteRange | undefined): Entry['parts'] {
  const parts: Entry['parts'] = []
  let at = 0
  /** Each has its place in the slot. */
  function add({ offset, length }: ByteRange): void {
    const last = parts.at(-1)
    if (last && isNear(last, offset)) {
      const grown = Math.max(last.length, offset + length - last.offset)
      at += grown - last.length
      last.length = grown
    } else {
      parts.push({ offset, length, at })
      at += length
    }
  }
  for (const range of ranges.toSorted((a, b) => a.offset - b.offset)) add(range)
  const last = parts.at(-1)
  if (spans && last && isNear(last, spans.offset)) add(spans)
  return parts
}

const isNear = (before: ByteRange, offset: number) => offset <= before.offset + before.length + GAP_BYTES
