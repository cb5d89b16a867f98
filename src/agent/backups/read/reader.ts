// Streams content out of a backup: one block after another, each checked, in constant memory. What is not on the disk, or
// damaged there, is read from the off-site copy.
import { Readable } from 'node:stream'
import { StoreUnreachable } from '../../../blobs/layered.ts'
import { isLost } from '../../../blobs/store.ts'
import { fail } from '../../../contract/errors.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { BlockPlace } from '../blocks/block-index.ts'
import { wholeIn } from '../blocks/prior-blocks.ts'
import { piecesBetween } from '../format/block-runs.ts'
import type { Entry } from '../format/entries.ts'
import { BLOCK_BYTES, ID_BYTES, packBlob } from '../format/format.ts'
import { sameId } from '../format/seal.ts'
import { unreachable } from '../store/backup-reading.ts'
import { expectBlock } from '../store/decode-pack.ts'
import { healLater, inDoubt } from '../store/healing.ts'
import type { Repository } from '../store/repository.ts'

/** Of a file that was often changed, what has changed is in many frames, by when it did. */
const FRAMES_KEPT = 64

type Content = Pick<Entry, 'content' | 'sizeBytes' | 'path'>

export interface ContentReader extends Disposable {
  /** Will be read, after what was expected before it. Only makes it quicker. */
  expect(entry: Content, start?: number, end?: number): void
  /**
   * For whoever gives something else before the first of what was expected: throws `offsite_unreachable` where that cannot be
   * read now. Costs no request, since what is fetched for it is kept.
   */
  reachFirst(): Promise<void>
  /**
   * The bytes of a file from `start` up to, not including, `end`. Throws `backup_damaged` before a wrong byte is given, and
   * `offsite_unreachable`.
   */
  read(entry: Content, start?: number, end?: number): AsyncGenerator<Uint8Array, void, undefined>
}

/** `share`: whose time on this thread it takes to check the blocks. */
export function createContentReader(repository: Repository, share: string): ContentReader {
  const turn = createTurns(share)
  const fetch = repository.fetches.begin({ isInOrder: true })
  /** Small files share frames: the last few are kept, so that a frame is not fetched once for every file in it. */
  const frames = new Map<string, Uint8Array>()
  /** The last that were found to be what their ids say: what a patched block is made of is read several times in turn. */
  let lastSound: { id: Uint8Array; frame: Uint8Array; inner: number; length: number }[] = []
  /** Those that `frames` will hold when what was expected so far has been read. */
  const expected = new Set<string>()
  /** Of the blocks that were expected, the first that is not on the disk. */
  let firstAway: BlockPlace | 'in doubt' | undefined

  /** Undefined where it is lost, or is not what was written. */
  async function frameAt(place: BlockPlace, isFromCopy: boolean): Promise<Uint8Array | undefined> {
    const key = `${place.packId} ${place.offset} ${isFromCopy}`
    const kept = frames.get(key)
    if (kept) {
      // The one that was used longest ago goes first.
      frames.delete(key)
      frames.set(key, kept)
      return kept
    }
    const stored = await (isFromCopy ? copyOf(place) : storedAt(place)).catch(ifLost)
    const raw = stored && decoded(stored, place)
    if (!raw) return undefined
    frames.set(key, raw)
    const oldest = frames.keys().next().value
    if (frames.size > FRAMES_KEPT && oldest !== undefined) frames.delete(oldest)
    return raw
  }

  /** Whether its frame will not be at hand when it is read, after what was expected before. */
  function willFetch({ packId, offset }: BlockPlace): boolean {
    const key = `${packId} ${offset}`
    const isKept = expected.delete(key)
    expected.add(key)
    const [oldest] = expected
    if (expected.size > FRAMES_KEPT && oldest !== undefined) expected.delete(oldest)
    return !isKept
  }

  function decoded(stored: Uint8Array, place: BlockPlace): Uint8Array | undefined {
    try {
      return repository.sealer.decode(stored, place, false)
    } catch {
      return undefined
    }
  }

  function storedAt(place: BlockPlace): Promise<Uint8Array> {
    if (repository.isAway(place.packId)) return copyOf(place)
    return repository.blobs.get(packBlob(place.packId), { offset: place.offset, length: place.storedLength })
  }

  function copyOf({ packId, offset, storedLength: length }: BlockPlace): Promise<Uint8Array> {
    return fetch.read(packId, [{ offset, length, uses: 1 }], async (fetched) => {
      const part = fetched.find((one) => one.offset <= offset && offset < one.offset + one.length)
      if (!part) return Buffer.alloc(0)
      const at = offset - part.offset
      // In memory of its own: what was fetched is used for something else before long.
      return Buffer.from(Buffer.from(part.bytes, part.at + at, Math.min(length, part.length - at)))
    })
  }

  /** Undefined where it is not what its name says. Throws `StoreUnreachable`. */
  async function sound(
    id: Uint8Array,
    place: BlockPlace,
    length: number,
    isFromCopy = false,
  ): Promise<Uint8Array | undefined> {
    const frame = await frameAt(place, isFromCopy)
    if (!frame) return undefined
    const { inner } = place
    const bytes = frame.subarray(inner, inner + length)
    const isSame = (one: (typeof lastSound)[number]) =>
      one.frame === frame && one.inner === inner && one.length === length && sameId(one.id, id)
    if (lastSound.some(isSame)) return bytes
    if (turn.due()) await turn.take()
    if (!sameId(repository.sealer.idOf(bytes), id)) return undefined
    lastSound = [{ id, frame, inner, length }, ...lastSound.slice(0, 1)]
    return bytes
  }

  async function blockOf(id: Uint8Array, length: number, path: string): Promise<Uint8Array> {
    const block = repository.index.findAny(id)
    if (block < 0) throw repository.doubtful.size > 0 ? inDoubt() : damaged(path)
    const place = repository.index.place(block)
    const bytes = (await sound(id, place, length)) ?? (await movedTo(id, place, length))
    if (bytes) return bytes
    const isAway = repository.isAway(place.packId)
    await repository.recordDamage([{ id, packId: place.packId }])
    const spared = !isAway && repository.offsite ? await sound(id, place, length, true).catch(ifOutOfReach) : undefined
    if (!spared) throw damaged(path)
    healLater(repository, place.packId, share)
    return spared
  }

  /** Where a reclaim has moved the block since it was looked up, or the pack has left for the copy. */
  async function movedTo(id: Uint8Array, from: BlockPlace, length: number): Promise<Uint8Array | undefined> {
    const again = repository.index.findAny(id)
    if (again < 0) return undefined
    const place = repository.index.place(again)
    const isMoved = place.packId !== from.packId || place.offset !== from.offset || repository.isAway(place.packId)
    return isMoved ? await sound(id, place, length) : undefined
  }

  async function fetchFirst(): Promise<void> {
    if (firstAway === 'in doubt') throw inDoubt()
    if (firstAway === undefined) return
    const { packId, offset, storedLength: length } = firstAway
    // Used by nobody yet, so it stays for whoever reads it.
    await fetch.read(packId, [{ offset, length, uses: 0 }], async () => {}).catch(ifLost)
  }

  return {
    expect(entry, start = 0, end = entry.sizeBytes) {
      if (!isSomeElsewhere(repository)) return
      for (const { idAt } of piecesBetween(entry, start, end, wholeIn(repository.index, entry.content))) {
        if (idAt < 0) continue
        const block = repository.index.findAny(entry.content, idAt)
        const place = block < 0 ? undefined : repository.index.place(block)
        if (place && willFetch(place)) expectBlock({ repository, fetch }, place)
        if (place && repository.isAway(place.packId)) firstAway ??= place
        if (!place && repository.doubtful.size > 0) firstAway ??= 'in doubt'
      }
    },
    reachFirst: () => fetchFirst().catch(ifUnreachable),
    async *read(entry, start = 0, end = entry.sizeBytes) {
      if (start >= end) return
      for (const { idAt, offset, length, from, blockBytes } of piecesBetween(
        entry,
        start,
        end,
        wholeIn(repository.index, entry.content),
      )) {
        const first = from + Math.max(0, start - offset)
        const last = from + Math.min(length, end - offset)
        const id = idAt < 0 ? undefined : entry.content.subarray(idAt, idAt + ID_BYTES)
        const whole = id ? await blockOf(id, blockBytes, entry.path).catch(ifUnreachable) : zeros
        yield whole.subarray(first, last)
      }
    },
    [Symbol.dispose]: () => fetch[Symbol.dispose](),
  }
}

/** One file, from `start` up to, not including, `end`. Fails before its first byte where the first block cannot be reached. */
export function streamFile(
  repository: Repository,
  entry: Content,
  { share, start, end }: { share: string; start?: number | undefined; end?: number | undefined },
): Readable {
  const reader = createContentReader(repository, share)
  reader.expect(entry, start, end)
  async function* content() {
    await reader.reachFirst()
    yield* reader.read(entry, start, end)
  }
  const stream = Readable.from(content(), { objectMode: false })
  stream.once('close', () => reader[Symbol.dispose]())
  return stream
}

/** Whether there may be blocks that are not on the disk. */
export const isSomeElsewhere = ({ blobs, doubtful }: Repository) => !blobs.away().next().done || doubtful.size > 0

const zeros = new Uint8Array(BLOCK_BYTES)

function ifLost(error: unknown): undefined {
  if (!isLost(error)) throw error
}

function ifOutOfReach(error: unknown): undefined {
  if (!(error instanceof StoreUnreachable)) throw error
}

function ifUnreachable(error: unknown): never {
  throw error instanceof StoreUnreachable ? unreachable(error) : error
}

function damaged(path: string) {
  return fail('backup_damaged', `The content of ${JSON.stringify(path)} in this backup is damaged.`)
}
