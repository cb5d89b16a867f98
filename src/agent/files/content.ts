// Reading and writing the content of one file. A file is replaced by one rename, so a reader sees the old or the new;
// the old one goes to the trash; and an entity tag keeps two editors from overwriting each other unseen.
import type { BigIntStats } from 'node:fs'
import type { FileEntry } from '../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import { type Change, journaled } from './changes/changes.ts'
import { placedWithParents } from './changes/new-parents.ts'
import { inodeOf } from './changes/probes.ts'
import { moveReplacing, moveToNewName, type Source } from './changes/replace.ts'
import { describeAt, etagOf, isTagListedWeakly, isWanted, type WantedVersion } from './reading/entries.ts'
import { FileStream } from './reading/file-stream.ts'
import { guessByName } from './reading/mime.ts'
import {
  addressOf,
  createFileAt,
  fsyncDirectory,
  fsyncFile,
  lstatAt,
  type OpenFile,
  statsIfThere,
} from './sandbox/directory.ts'
import { explainedAsync } from './sandbox/errors.ts'
import { giveTo, takeAfter } from './sandbox/ownership.ts'
import { checkNewName, formatPath, parsePath, type Segments } from './sandbox/paths.ts'
import type { Place } from './sandbox/sandbox.ts'
import type { ServerFiles } from './server-files.ts'
import { type Amount, NOTHING, spaceOf, sum } from './space/amounts.ts'
import { prepareReplaced, type RoomForParents, recordsOf, roomForParents } from './space/parents.ts'
import { countingGrowth, type Room } from './space/usage.ts'
import type { TrashBatch } from './trash/trash-records.ts'
import { receiveBytes, spaceFrom } from './uploads/receive.ts'

export interface Content {
  readonly file: OpenFile
  readonly name: string
  readonly etag: string
  readonly sizeBytes: number
  readonly modifiedAt: Date
  readonly mime: string
}

/** The caller closes `file`, or gives it to `streamContent`, which does. */
export function openContent(server: ServerFiles, path: string): Content {
  const segments = server.files.resolve(path)
  const file = server.files.openFile(segments)
  const name = parsePath(path).at(-1) ?? ''
  return {
    file,
    name,
    ...versionOf(file.stats),
    sizeBytes: Number(file.stats.size),
    mime: guessByName(name)?.mime ?? 'application/octet-stream',
  }
}

/** Bytes `start` to `end`, both included. Closes the file at the end, also when the stream is destroyed. */
export function streamContent(file: OpenFile, range?: { start: number; end: number }): FileStream {
  return new FileStream(file.release(), range)
}

export interface WriteOptions extends WantedVersion {
  /** Tags that the file must not have; `*` for nothing may have the name. */
  ifNoneMatch?: string
  /** False refuses to replace anything. */
  overwrite?: boolean
  maxBytes?: number
  /** What the sender says it will send, which may be a lie: refused if it could not fit, and otherwise worth nothing. */
  expectedBytes?: number
  signal?: AbortSignal
  /** The id of the work that this is the result of: noted, so that the work can be begun again after a crash. */
  workId?: string | undefined
  /** Who writes, where the writing has an entry of its own; what a job writes is told of by the job. */
  change?: Change
}

interface Placed {
  entry: FileEntry
  etag: string
  created: boolean
}

export async function writeContent(
  server: ServerFiles,
  path: string,
  source: AsyncIterable<Uint8Array>,
  options: WriteOptions = {},
): Promise<Placed> {
  const segments = parsePath(path)
  checkTarget(server, segments, options)
  await using staged = server.staging.open()
  return await explainedAsync(path, async () => {
    using reservation = await server.usage.announce(options.expectedBytes ?? 0, 1)
    using file = createFileAt(staged.folder, staged.name)
    const bytes = await receiveBytes(file, source, spaceFrom(reservation), options)
    options.signal?.throwIfAborted()
    const clear = (beside: Amount) => reservation.clear(spaceOf(bytes), 1, beside)
    const place = async (room: RoomForParents, ready?: Promise<unknown>): Promise<Placed> => {
      options.signal?.throwIfAborted()
      const source = { folder: staged.folder, name: staged.name }
      const placed = await placeWithRoom(server, segments, source, { ...options, ready }, room)
      reservation.commit()
      return placed
    }
    const withRoom = async (work: (room: RoomForParents) => Promise<Placed>): Promise<Placed> => {
      using _held = server.lock.share()
      using room = await roomToPlace(server, segments, { ...options, clear })
      return await work(room)
    }
    const { change, workId } = options
    if (change) {
      const written = { path: formatPath(segments), sizeBytes: bytes }
      return await server.claims.alone(
        () => [written.path],
        () => withRoom((room) => placeJournaled(server, change, written, file, (ready) => place(room, ready))),
      )
    }
    await fsyncFile(file)
    if (workId) await server.placements.note(workId, path, etagOf(lstatAt(staged.folder, staged.name)))
    return await withRoom(place)
  })
}

/** The bytes, the intent and the record of what is replaced go to the disk together, before the file is put in its place. */
function placeJournaled(
  server: ServerFiles,
  change: Change,
  written: { path: string; sizeBytes: number },
  file: OpenFile,
  place: (ready: Promise<unknown>) => Promise<Placed>,
): Promise<Placed> {
  const probe = { op: 'written', file: { ...written, inode: inodeOf(file.stats) } } as const
  return journaled(server, change, probe, async (durable) => {
    const ready = Promise.all([fsyncFile(file), durable])
    // Whoever places the file hears of a failure, unless it is refused before that.
    ready.catch(() => {})
    return { answer: await place(ready), properties: written }
  })
}

/**
 * Before the first byte, so that a sender is stopped early; again when the file is put in its place. Answers whether there
 * is a file that it will replace.
 */
export function checkTarget(server: ServerFiles, segments: Segments, options: WriteOptions): boolean {
  server.gate.requireOpen()
  if (options.expectedBytes !== undefined && options.expectedBytes > (options.maxBytes ?? Number.POSITIVE_INFINITY))
    throw fail('too_large', `The limit is ${options.maxBytes} bytes.`)
  const { depth, stats } = server.files.reach(segments)
  if (depth < segments.length && stats && !stats.isDirectory()) {
    const above = formatPath(segments.slice(0, depth))
    throw fail('invalid_path', `${JSON.stringify(above)} is not a directory that is written into.`)
  }
  const isThere = depth === segments.length
  for (const missing of segments.slice(depth)) checkNewName(missing)
  checkReplaced(isThere ? (stats ?? server.files.lstat(segments)) : undefined, segments, options)
  return isThere
}

function checkReplaced(stats: BigIntStats | undefined, segments: Segments, options: WriteOptions): void {
  const path = JSON.stringify(formatPath(segments))
  if (!stats) checkNewName(segments.at(-1) ?? '')
  if (stats && options.ifNoneMatch !== undefined && isTagListedWeakly(options.ifNoneMatch, etagOf(stats)))
    throw taken(path)
  if (stats && !stats.isFile()) throw fail('invalid_path', `${path} is not a regular file.`)
  if (stats && options.overwrite === false) throw fail('already_exists', `${path} already exists.`)
  const isAsRead = stats ? isWanted(versionOf(stats), options) : options.ifMatch === undefined
  if (!isAsRead) throw fail('precondition_failed', 'The file was changed since it was read.')
}

const versionOf = (stats: BigIntStats) => ({ etag: etagOf(stats), modifiedAt: new Date(Number(stats.mtimeMs)) })

const taken = (path: string) => fail('precondition_failed', `${path} is there already.`)

interface RoomOptions extends Omit<PlaceOptions, 'ready' | 'records'> {
  /** Makes room for the file, and for `beside`, which comes with it. */
  clear: (beside: Amount) => Promise<void>
}

/** Puts a finished file in its place. What was there goes to the trash. */
export async function placeFile(
  server: ServerFiles,
  segments: Segments,
  source: Source,
  options: RoomOptions,
): Promise<Placed> {
  using _held = server.lock.share()
  using room = await roomToPlace(server, segments, options)
  return await placeWithRoom(server, segments, source, options, room)
}

/** For whoever holds the lock. What can be refused by now is refused before any room is made for it. */
async function roomToPlace(server: ServerFiles, segments: Segments, options: RoomOptions): Promise<RoomForParents> {
  const records = checkTarget(server, segments, options) ? recordsOf([{ path: formatPath(segments) }]) : NOTHING
  return await roomForParents(server, [segments], (parents) => options.clear(sum(parents, records)))
}

interface PlaceOptions extends Pick<WriteOptions, 'ifMatch' | 'ifNoneMatch' | 'ifUnmodifiedSince' | 'overwrite'> {
  /** For a file that is not synced yet: resolves once it is, and the server's files may be touched. */
  ready?: Promise<unknown> | undefined
  /** Room for the record of what is replaced, where it was taken before. */
  records?: Room | undefined
}

/** For whoever holds the lock, and room for the directories that are missing. */
export async function placeWithRoom(
  server: ServerFiles,
  segments: Segments,
  source: Source,
  options: PlaceOptions,
  room: RoomForParents,
): Promise<Placed> {
  using early = options.ready && (await prepareBeforehand(server, segments, options))
  await options.ready
  // Below a directory that is not there nothing has a tag.
  const isPlaced =
    options.ifMatch === undefined && (await placedWithParents(server, source, segments, { isOurs: true }))
  if (!isPlaced) await room.renew(segments)
  using place = server.files.openNewPlace(segments)
  const before = isPlaced ? undefined : statsIfThere(place.parent, place.name)
  if (!isPlaced) {
    checkReplaced(before, segments, options)
    if (before) await replaceFile(server, segments, place, source, options, early)
    else await placeNew(server, place, source, options)
  }
  const stats = statsIfThere(place.parent, place.name)
  return {
    entry: describeAt(place.parent, place.name),
    etag: stats ? etagOf(stats) : '',
    created: before === undefined,
  }
}

async function placeNew(
  server: ServerFiles,
  place: Place,
  source: Source,
  { ifNoneMatch }: PlaceOptions,
): Promise<void> {
  giveTo(server.files.owner(), addressOf(source.folder, source.name))
  try {
    countingGrowth(server.usage, place.parent, () => moveToNewName(source, place.parent, place.name))
  } catch (error) {
    // Another program was faster.
    throw isFailure(error, 'already_exists') && ifNoneMatch === '*' ? taken(JSON.stringify(place.path)) : error
  }
  await fsyncDirectory(place.parent)
}

/**
 * The trash has its record by the time the new file is synced. Where nothing comes to be replaced after all, the batch stays
 * empty, shows nothing, and goes when it expires.
 */
async function prepareBeforehand(
  server: ServerFiles,
  segments: Segments,
  options: PlaceOptions,
): Promise<TrashBatch | undefined> {
  if (!checkTarget(server, segments, options)) return undefined
  return await prepareReplaced(server, [{ path: formatPath(segments), kind: 'file' }], options.records)
}

async function replaceFile(
  server: ServerFiles,
  segments: Segments,
  place: Place,
  source: Source,
  options: PlaceOptions,
  early: TrashBatch | undefined,
): Promise<void> {
  using held = new DisposableStack()
  const prepare = () => prepareReplaced(server, [{ path: place.path, kind: 'file' }], options.records)
  const batch = early ?? held.use(await prepare())
  const stats = statsIfThere(place.parent, place.name)
  checkReplaced(stats, segments, options)
  if (!stats) return await placeNew(server, place, source, options)
  takeAfter(addressOf(source.folder, source.name), stats)
  moveReplacing(source, place.parent, place.name, batch, 0)
  server.usage.touch()
  await Promise.all([fsyncDirectory(batch.folder), fsyncDirectory(place.parent)])
}
