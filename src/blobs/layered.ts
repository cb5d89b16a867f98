// A store on a disk, and a copy of it elsewhere. Everything is written to the disk. A blob may leave it for the copy: a
// note on the disk says so, and it is read from the copy then. Nothing else is, so that a store whose copy cannot be
// reached does all it can do without.
import { forEachAtOnce } from '../kit/waiting/work-group.ts'
import { type BlobInfo, BlobMissing, type BlobStore, type BlobWriter, isLost } from './store.ts'

/** On the disk: what a blob that is only in the copy is known by. */
const NOTES = 'away/'
const noteOf = (name: string) => `${NOTES}${name}`
const NOTES_AT_ONCE = 16

export interface LayeredStore extends BlobStore {
  /** The disk alone. */
  readonly local: BlobStore
  isAway(name: string): boolean
  /** The blobs that are only in the copy, with their sizes. */
  away(): IterableIterator<[string, number]>
  /** The copy has the blob, with this size: from now on it is read from there, if the disk does not have it. Durable. */
  note(name: string, sizeBytes: number): Promise<void>
  /** As `note`, and takes the blob off the disk. A crash in between leaves both, which is as good as before. */
  leave(name: string, sizeBytes: number): Promise<void>
}

/** The copy does not answer, or refuses to: nothing is known about the blob. Never thrown for one that is on the disk. */
export class StoreUnreachable extends Error {
  readonly code = 'store_unreachable'

  constructor(cause: unknown) {
    super(`the copy cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'StoreUnreachable'
  }
}

/** The copy, for reading: whatever fails is `StoreUnreachable`, apart from a blob that is lost. */
export function asCopy(store: BlobStore): BlobStore {
  return {
    ...store,
    get: (name, range, into) => reaching(() => store.get(name, range, into)),
    open: async (name) => {
      const reader = await reaching(() => store.open(name))
      return { get: (range, into) => reaching(() => reader.get(range, into)), close: reader.close }
    },
    stat: (name) => reaching(() => store.stat(name)),
    async *list(prefix) {
      try {
        yield* store.list(prefix)
      } catch (error) {
        throw new StoreUnreachable(error)
      }
    },
    listAll: () => reaching(async () => store.listAll?.()),
  }
}

async function reaching<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw isLost(error) ? error : new StoreUnreachable(error)
  }
}

interface Note {
  sizeBytes: number
  modifiedAt: number
}

/** Only the process that writes to `local` may open it. `copy` is one of `asCopy`. */
export async function openLayeredStore(local: BlobStore, copy: BlobStore): Promise<LayeredStore> {
  const notes = await readNotes(local)

  async function forget(name: string): Promise<void> {
    if (!notes.has(name)) return
    await local.delete(noteOf(name))
    notes.delete(name)
  }

  async function note(name: string, sizeBytes: number): Promise<void> {
    await local.put(noteOf(name), Buffer.from(`${JSON.stringify({ sizeBytes })}\n`))
    notes.set(name, { sizeBytes, modifiedAt: Date.now() })
  }

  /** The copy's answer where the disk has none and a note says that it is there. */
  async function localFirst<T>(name: string, read: (store: BlobStore) => Promise<T>): Promise<T> {
    try {
      return await read(local)
    } catch (error) {
      if (!(error instanceof BlobMissing) || !notes.has(name)) throw error
      return await read(copy)
    }
  }

  return {
    local,
    isAway: (name) => notes.has(name),
    *away() {
      for (const [name, { sizeBytes }] of notes) yield [name, sizeBytes]
    },
    note,
    async leave(name, sizeBytes) {
      await note(name, sizeBytes)
      await local.delete(name)
    },

    async create(name): Promise<BlobWriter> {
      const writer = await local.create(name)
      return {
        write: writer.write,
        abort: writer.abort,
        async commit() {
          await writer.commit()
          await forget(name)
        },
      }
    },
    async put(name, bytes) {
      await local.put(name, bytes)
      await forget(name)
    },
    get: (name, range, into) => localFirst(name, (store) => store.get(name, range, into)),
    open: (name) => localFirst(name, (store) => store.open(name)),
    async stat(name) {
      try {
        return await local.stat(name)
      } catch (error) {
        const noted = error instanceof BlobMissing ? notes.get(name) : undefined
        if (!noted) throw error
        return { name, ...noted }
      }
    },
    async *list(prefix): AsyncGenerator<BlobInfo, void, undefined> {
      // A blob that leaves while it is listed is listed once.
      const seen = new Set<string>()
      for await (const blob of local.list(prefix)) {
        if (blob.name.startsWith(NOTES)) continue
        seen.add(blob.name)
        yield blob
      }
      for (const [name, noted] of [...notes]) if (name.startsWith(prefix) && !seen.has(name)) yield { name, ...noted }
    },
    async delete(name) {
      await forget(name)
      await local.delete(name)
    },
  }
}

/** What a blob that is on the disk after all is noted by is dropped: its leaving was cut short. */
async function readNotes(local: BlobStore): Promise<Map<string, Note>> {
  const found: BlobInfo[] = []
  for await (const blob of local.list(NOTES)) found.push(blob)
  const notes = new Map<string, Note>()
  await forEachAtOnce(found, NOTES_AT_ONCE, async ({ name: noteName, modifiedAt }) => {
    const name = noteName.slice(NOTES.length)
    if (await isThere(local, name)) return await local.delete(noteName)
    const sizeBytes = sizeIn(await local.get(noteName))
    if (sizeBytes !== undefined) notes.set(name, { sizeBytes, modifiedAt })
  })
  return notes
}

async function isThere(store: BlobStore, name: string): Promise<boolean> {
  try {
    await store.stat(name)
    return true
  } catch (error) {
    if (error instanceof BlobMissing) return false
    throw error
  }
}

/** Undefined where the note is damaged: whoever needs the blob asks the copy. */
function sizeIn(note: Uint8Array): number | undefined {
  try {
    const { sizeBytes } = JSON.parse(Buffer.from(note).toString()) as { sizeBytes?: unknown }
    return Number.isSafeInteger(sizeBytes) ? (sizeBytes as number) : undefined
  } catch {
    return undefined
  }
}
