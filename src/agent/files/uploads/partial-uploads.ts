// Files that arrive in pieces, over many requests and restarts. The length of the part file is the offset: after a
// crash of the process it is exact, and after a power cut it is what the file system has kept, which may be less than
// was acknowledged; the sender asks before it resumes. The bytes are synced before the file is moved into place.
import { fstatSync } from 'node:fs'
import { fail, isFailure } from '../../../contract/errors.ts'
import { UNFINISHED_UPLOADS_MAX } from '../../../contract/fixed-limits.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { checkTarget, placeFile } from '../content.ts'
import {
  createFileAt,
  type Directory,
  fsyncFile,
  openForUpdateAt,
  openOwnFolder,
  statsIfThere,
} from '../sandbox/directory.ts'
import { explainedAsync } from '../sandbox/errors.ts'
import { parsePath } from '../sandbox/paths.ts'
import type { ServerFiles } from '../server-files.ts'
import { type Amount, blocksIn, spaceOf } from '../space/amounts.ts'
import type { Reservation } from '../space/reservation.ts'
import { type Checksum, discardUnchecked, receiveChecked, verifying } from './checked-bytes.ts'
import { createFinishedUploads } from './finished-uploads.ts'
import {
  doneIds,
  doneName,
  dropPart,
  dropPartial,
  type FoundPartial,
  isPartialId,
  leftAt,
  listPartials,
  markDone,
  type PartialRecord,
  partName,
  readRecord,
  writeRecord,
} from './partial-records.ts'
import { receiveBytes, spaceFrom } from './receive.ts'

/** Refusals that trying again will not change. */
const FINAL = ['already_exists', 'invalid_path', 'not_found'] as const

export interface PartialState {
  record: PartialRecord
  offset: number
  lastByteAt: number
}

export interface PartialUploads {
  create(record: PartialRecord, maxBytes: number): Promise<void>
  find(id: string): PartialState | undefined
  /** Answers the new offset. Cut off, it keeps what came, unless a checksum was to be checked against all of it. */
  append(id: string, source: AsyncIterable<Uint8Array>, options: AppendOptions): Promise<number>
  /** Puts the file in its place and tells of it; does nothing when it was done before. */
  finish(id: string): Promise<void>
  remove(id: string): void
  /** Takes up what a process that died has left: finishes what is whole, holds the space of the rest. */
  recover(): Promise<void>
  /** In turns of the event loop. */
  expire(before: number, isBusy: (id: string) => boolean, signal?: AbortSignal): Promise<void>
  /** Those that are not done. */
  list(): PartialState[]
  /** Those that were finished since then, in turns of the event loop. */
  finishedSince(since: number, signal?: AbortSignal): AsyncGenerator<PartialState>
}

export interface AppendOptions {
  signal: AbortSignal
  checksum?: Checksum | undefined
}

/** Of one server. The caller sees to it that an upload has one request at a time. */
export function createPartialUploads(
  server: ServerFiles,
  /** May be called again for the same upload after a crash. */
  onPlaced: (record: PartialRecord) => Promise<void>,
): PartialUploads {
  const reservations = new Map<string, Reservation>()
  const unfinished = new Set<string>()
  const finished = createFinishedUploads()

  const open = () => openOwnFolder(server.folders.staging)

  function stateOf(folder: Directory, id: string): PartialState | undefined {
    const record = isPartialId(id) ? readRecord(folder, id) : undefined
    if (!record) return undefined
    const stats = statsIfThere(folder, record.isFinished ? doneName(id) : partName(id))
    const offset = record.isFinished || !stats ? record.sizeBytes : Number(stats.size)
    return { record, offset, lastByteAt: stats ? Number(stats.mtimeMs) : 0 }
  }

  /** One whose record cannot be read now keeps nobody from the others. */
  function stateIfReadable(folder: Directory, id: string): PartialState | undefined {
    try {
      return stateOf(folder, id)
    } catch {
      return undefined
    }
  }

  /** What is left of an upload whose record is damaged goes as soon as anybody asks for it: its sender begins anew. */
  function find(folder: Directory, id: string): PartialState | undefined {
    const state = stateOf(folder, id)
    if (!state && unfinished.has(id)) remove(folder, id)
    return state
  }

  function require(folder: Directory, id: string): PartialState {
    const state = find(folder, id)
    if (!state) throw fail('not_found', 'No such upload, or it has expired.')
    return state
  }

  /** The whole length counts from the beginning to the end, whatever has arrived of it. */
  async function reserve({ record, offset }: PartialState): Promise<Reservation> {
    const known = reservations.get(record.id)
    if (known) return known
    const reservation = server.usage.hold(offset)
    try {
      await reservation.announce(spaceOf(record.sizeBytes) - spaceOf(offset))
      reservation.settle(blocksIn(offset))
      reservations.set(record.id, reservation)
      return reservation
    } catch (error) {
      reservation[Symbol.dispose]()
      throw error
    }
  }

  function release(id: string): void {
    reservations.get(id)?.[Symbol.dispose]()
    reservations.delete(id)
  }

  function remove(folder: Directory, id: string, uncheckedFrom?: number): void {
    dropPartial(folder, { id, uncheckedFrom })
    release(id)
    unfinished.delete(id)
  }

  async function place(folder: Directory, record: PartialRecord, reservation: Reservation): Promise<void> {
    const segments = parsePath(record.path)
    const part = statsIfThere(folder, partName(record.id))
    const placed = server.files.lstatIfThere(segments)
    // Without a part it was placed before the process died. A file that is not there has two names in one instant of
    // being placed, and only the second must go then.
    if (!part || (placed && placed.ino === part.ino && placed.dev === part.dev)) {
      dropPart(folder, record.id)
      // A scan may have counted it already, before it is counted as this upload's.
      server.usage.touch()
      return
    }
    using file = openForUpdateAt(folder, partName(record.id))
    await fsyncFile(file)
    const clear = (beside: Amount) => reservation.clear(spaceOf(record.sizeBytes), 1, beside)
    const { overwrite } = record
    await placeFile(server, segments, { folder, name: partName(record.id) }, { overwrite, clear })
  }

  async function finish(folder: Directory, state: PartialState): Promise<void> {
    const { record } = state
    if (record.isFinished) return
    const reservation = await reserve(state)
    try {
      await place(folder, record, reservation)
      await onPlaced(record)
    } catch (error) {
      if (isFailure(error) && FINAL.some((code) => code === error.code)) remove(folder, record.id)
      throw error
    }
    reservation.commit()
    release(record.id)
    // Kept for a while, so that a sender that missed the answer hears that all of it is here.
    await markDone(folder, record.id)
    unfinished.delete(record.id)
    finished.add(folder, record.id)
  }

  async function takeUp(folder: Directory, state: PartialState): Promise<void> {
    // As records said it before their names did.
    if (state.record.isFinished) return await markDone(folder, state.record.id)
    unfinished.add(state.record.id)
    if (state.offset === state.record.sizeBytes) await finish(folder, state)
    else await reserve(state)
  }

  /** Of those that are done, with the time at which they were. */
  async function* done(folder: Directory, signal?: AbortSignal): AsyncGenerator<{ id: string; at: number }> {
    const turn = createTurns(server.files.share, signal)
    for (const id of doneIds(folder)) {
      if (turn.due()) await turn.take()
      const stats = statsIfThere(folder, doneName(id))
      if (stats) yield { id, at: Number(stats.mtimeMs) }
    }
  }

  return {
    async create(record, maxBytes) {
      const segments = parsePath(record.path)
      checkTarget(server, segments, { overwrite: record.overwrite, maxBytes, expectedBytes: record.sizeBytes })
      using folder = open()
      if (unfinished.size >= UNFINISHED_UPLOADS_MAX)
        throw fail('server_busy', `At most ${UNFINISHED_UPLOADS_MAX} uploads of a server can be unfinished.`)
      // Before anything is awaited, so that those that come at once cannot pass the limit together.
      unfinished.add(record.id)
      await explainedAsync(record.path, async () => {
        try {
          const reservation = await server.usage.announce(record.sizeBytes, 1)
          reservation.settle(0)
          reservations.set(record.id, reservation)
          createFileAt(folder, partName(record.id))[Symbol.dispose]()
          await writeRecord(folder, record)
        } catch (error) {
          remove(folder, record.id)
          throw error
        }
      })
    },

    find(id) {
      using folder = open()
      return find(folder, id)
    },

    async append(id, source, { signal, checksum }) {
      using folder = open()
      const state = require(folder, id)
      const { offset, record } = state
      if (record.isFinished) return offset
      const reservation = await reserve(state)
      const space = spaceFrom(reservation)
      using file = openForUpdateAt(folder, partName(id))
      const options = { at: offset, maxBytes: record.sizeBytes - offset, signal, ownsChunks: true }
      return await explainedAsync(record.path, async () => {
        try {
          if (!checksum) return offset + (await receiveBytes(file, source, space, { ...options, keepPartial: true }))
          return offset + (await receiveChecked(folder, id, file, verifying(source, checksum), space, options))
        } finally {
          reservation.settle(blocksIn(Number(fstatSync(file.fd).size)))
        }
      })
    },

    async finish(id) {
      using folder = open()
      await finish(folder, require(folder, id))
    },

    remove(id) {
      using folder = open()
      remove(folder, id)
    },

    async recover() {
      using folder = open()
      const turn = createTurns(server.files.share)
      await forEach(listPartials(folder), async ({ id, uncheckedFrom }) => {
        if (turn.due()) await turn.take()
        if (uncheckedFrom !== undefined) discardUnchecked(folder, id, uncheckedFrom)
        const state = stateOf(folder, id)
        if (state) await takeUp(folder, state).catch(ignoreRefusal)
        else remove(folder, id)
      })
    },

    async expire(before, isBusy, signal) {
      using folder = open()
      const expireOne = ({ id, uncheckedFrom }: FoundPartial) => {
        const at = stateOf(folder, id)?.lastByteAt ?? leftAt(folder, id)
        if (!isBusy(id) && at < before) remove(folder, id, uncheckedFrom)
      }
      await forEach(listPartials(folder), expireOne)
      await forEach(done(folder, signal), ({ id, at }) => {
        if (at >= before) finished.found(folder, id)
        else if (!isBusy(id)) finished.drop(folder, id)
      })
    },

    list() {
      using folder = open()
      return listPartials(folder).flatMap(({ id }) => stateIfReadable(folder, id) ?? [])
    },

    async *finishedSince(since, signal) {
      using folder = open()
      for await (const { id, at } of done(folder, signal)) {
        const state = at >= since ? stateIfReadable(folder, id) : undefined
        if (state) yield state
      }
    },
  }
}

/** What fails for one, fails after the others had their turn. */
async function forEach<T>(all: Iterable<T> | AsyncIterable<T>, work: (one: T) => void | Promise<void>): Promise<void> {
  let failure: { error: unknown } | undefined
  for await (const one of all) {
    try {
      await work(one)
    } catch (error) {
      failure ??= { error }
    }
  }
  if (failure) throw failure.error
}

/** It is tried again when the sender comes back, and the sender hears of it then. */
function ignoreRefusal(error: unknown): void {
  if (!isFailure(error)) throw error
}
