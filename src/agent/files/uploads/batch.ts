// The files of one upload request: all are received and synced in staging first, and only when every one is complete
// are they moved into place, each by one rename. A refusal before that leaves nothing behind.
import type { FileEntry } from '../../../contract/agent/agent-files.ts'
import { fail } from '../../../contract/errors.ts'
import { FORM_FILES_MAX, FORM_NAMES_MAX, FORM_PATH_BYTES_MAX } from '../../../contract/fixed-limits.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { type Change, journaled } from '../changes/changes.ts'
import { inodeOf, uploadProperties } from '../changes/probes.ts'
import { checkTarget, placeWithRoom } from '../content.ts'
import { aboutField, aboutFieldAsync } from '../field-faults.ts'
import { createFileAt, type Directory, fsyncFile, mkdirAt, openChild } from '../sandbox/directory.ts'
import { explainedAsync } from '../sandbox/errors.ts'
import { createPathTree } from '../sandbox/path-tree.ts'
import { checkNewName, formatPath, parseEntry, parsePath, type Segments } from '../sandbox/paths.ts'
import type { ServerFiles } from '../server-files.ts'
import { type Amount, NOTHING, spaceOf, sum } from '../space/amounts.ts'
import { type RoomForParents, recordsOf, roomForParents } from '../space/parents.ts'
import type { Reservation } from '../space/reservation.ts'
import type { Room } from '../space/usage.ts'
import { findIdentical } from './identical.ts'
import { receiveBytes, spaceFrom } from './receive.ts'

export interface BatchOptions {
  directory: string
  overwrite: boolean
  /** Leaves a file as it is that is there already with the same bytes. */
  skipIdentical?: boolean
  /** Of each file. */
  maxBytes: number
  /** Of all files together, where the sender has said so, which may be a lie; else 0. */
  expectedBytes: number
  signal: AbortSignal
  change: Change
}

export interface NamedSource {
  /** Relative to the directory; may hold slashes. */
  name: string
  bytes: AsyncIterable<Uint8Array>
}

interface Received {
  /** Of the request, for its faults. */
  field: string
  segments: Segments
  path: string
  stagedName: string
  inode: string
  sizeBytes: number
}

/** Where a file that a sender has named relative to the directory will be. */
export function uploadTarget(directory: Segments, name: string): Segments {
  if (/(?:^|\/)\.?$/.test(name)) throw fail('invalid_path', 'The name of a file cannot end in a slash.')
  if (name.startsWith('/')) throw fail('invalid_path', 'The name of a file cannot begin with a slash.')
  return parseEntry(directory, name)
}

/** Before the first byte; what is missing of it is made when the files are put in their places. */
function checkDirectory({ files }: ServerFiles, directory: Segments): void {
  const { depth, stats } = files.reach(directory)
  if (stats && !stats.isDirectory()) {
    const above = formatPath(directory.slice(0, depth))
    throw fail('invalid_path', `${JSON.stringify(above)} is not a directory that is written into.`)
  }
  for (const name of directory.slice(depth)) checkNewName(name)
}

export async function writeBatch(
  server: ServerFiles,
  sources: AsyncIterable<NamedSource>,
  options: BatchOptions,
): Promise<FileEntry[]> {
  const directory = aboutField('/directory', () => parsePath(options.directory))
  if (options.expectedBytes > options.maxBytes * FORM_FILES_MAX)
    throw fail('too_large', `A request may have at most ${FORM_FILES_MAX} files of at most ${options.maxBytes} bytes.`)
  const names = createNames()
  await using held = new AsyncDisposableStack()
  let folder: Directory | undefined
  // Not before the first file begins: what is refused by then leaves nothing to take away.
  const staged = () => (folder ??= openStagedFolder(server, held))
  return await explainedAsync(options.directory, async () => {
    aboutField('/directory', () => checkDirectory(server, directory))
    using reservation = await server.usage.announce(options.expectedBytes, 0)
    const arriving = spaceFrom(reservation)
    const received: Received[] = []
    for await (const { name, bytes } of sources) {
      const field = `/files/${received.length}`
      const segments = aboutField(field, () => {
        const target = uploadTarget(directory, name)
        names.add(target)
        checkTarget(server, target, { overwrite: options.overwrite })
        return target
      })
      await reservation.takeEntry()
      const stagedName = String(received.length)
      using file = createFileAt(staged(), stagedName)
      const sizeBytes = await receiveBytes(file, bytes, arriving, { ...options, ownsChunks: true })
      // What the last block of each has over counts too: small files take more than their bytes.
      await arriving.need(spaceOf(sizeBytes) - sizeBytes, 0)
      await fsyncFile(file)
      received.push({ field, segments, path: formatPath(segments), stagedName, inode: inodeOf(file.stats), sizeBytes })
    }
    options.signal.throwIfAborted()
    return await server.claims.alone(
      () => received.map(({ path }) => path),
      () => placeChanged(server, staged(), received, reservation, options),
    )
  })
}

/** In the order in which they were sent; one entry of the activity tells of those that change something. */
async function placeChanged(
  server: ServerFiles,
  folder: Directory,
  received: readonly Received[],
  reservation: Reservation,
  options: BatchOptions,
): Promise<FileEntry[]> {
  const entries = options.skipIdentical ? await identicalOf(server, folder, received) : new Map<Received, FileEntry>()
  const changed = received.filter((file) => !entries.has(file))
  if (changed.length > 0) {
    const placed = await placeJournaled(server, folder, changed, reservation, options)
    for (const [index, file] of changed.entries()) entries.set(file, placed[index] as FileEntry)
  }
  return received.map((file) => entries.get(file) as FileEntry)
}

async function placeJournaled(
  server: ServerFiles,
  folder: Directory,
  received: readonly Received[],
  reservation: Reservation,
  options: BatchOptions,
): Promise<FileEntry[]> {
  using _held = server.lock.share()
  using prepared = await prepareToPlace(server, received, reservation, options)
  const files = received.map(({ path, inode, sizeBytes }) => ({ path, inode, sizeBytes }))
  const probe = { op: 'uploaded', directory: options.directory, files } as const
  return await journaled(server, options.change, probe, async (durable) => {
    await durable
    const entries = await placeAll(server, folder, received, prepared, options)
    reservation.commit()
    return { answer: entries, properties: uploadProperties(options.directory, entries, 'multipart') }
  })
}

async function identicalOf(server: ServerFiles, folder: Directory, received: readonly Received[]) {
  const identical = new Map<Received, FileEntry>()
  for (const file of received) {
    const entry = await findIdentical(server, file.segments, { folder, name: file.stagedName })
    if (entry) identical.set(file, entry)
  }
  return identical
}

function openStagedFolder(server: ServerFiles, held: AsyncDisposableStack): Directory {
  const { folder, name } = held.use(server.staging.open())
  mkdirAt(folder, name, 0o700)
  return held.use(openChild(folder, name))
}

interface Prepared extends Disposable {
  replacing: ReadonlySet<Segments>
  /** For the directories that are missing. */
  room: RoomForParents
  /** For the records of what is replaced. */
  records: Room
}

/** What can be refused is looked for in all, before there is room for all, before the first is placed. */
async function prepareToPlace(
  server: ServerFiles,
  received: readonly Received[],
  reservation: Reservation,
  { overwrite }: BatchOptions,
): Promise<Prepared> {
  const turn = createTurns(server.files.share)
  const replacing = new Set<Segments>()
  let needed = NOTHING
  for (const { field, segments } of received) {
    if (turn.due()) await turn.take()
    if (!aboutField(field, () => checkTarget(server, segments, { overwrite }))) continue
    replacing.add(segments)
    needed = sum(needed, recordsOf([{ path: formatPath(segments) }]))
  }
  const space = received.reduce((bytes, { sizeBytes }) => bytes + spaceOf(sizeBytes), 0)
  const paths = received.map(({ segments }) => segments)
  using held = new DisposableStack()
  const clear = (parents: Amount) => reservation.clear(space, received.length, sum(parents, needed))
  const room = held.use(await roomForParents(server, paths, clear))
  const records = held.use(await server.usage.room(needed))
  const release = held.move()
  return { replacing, room, records, [Symbol.dispose]: () => release.dispose() }
}

async function placeAll(
  server: ServerFiles,
  folder: Directory,
  received: readonly Received[],
  { replacing, room, records }: Prepared,
  { overwrite }: BatchOptions,
): Promise<FileEntry[]> {
  const entries: FileEntry[] = []
  for (const { field, segments, stagedName } of received) {
    await room.renew(segments)
    const source = { folder, name: stagedName }
    const held = replacing.has(segments) ? records : undefined
    const { entry } = await aboutFieldAsync(field, () =>
      placeWithRoom(server, segments, source, { overwrite, records: held }, room),
    )
    room.made(segments)
    entries.push(entry)
  }
  return entries
}

/** Two files of one request cannot have one name, nor one the name of a directory that another needs. */
function createNames() {
  const paths = createPathTree()
  let files = 0
  let names = 0
  let pathBytes = 0
  return {
    add(segments: Segments): void {
      const path = formatPath(segments)
      files++
      names += segments.length
      pathBytes += Buffer.byteLength(path)
      if (files > FORM_FILES_MAX) throw fail('too_large', `A request may have at most ${FORM_FILES_MAX} files.`)
      if (names > FORM_NAMES_MAX || pathBytes > FORM_PATH_BYTES_MAX)
        throw fail('too_large', 'The paths of the files in the request are too long in total.')
      const neighbour = paths.add(segments)
      if (!neighbour) return
      if (neighbour.is === 'same') throw fail('invalid_path', `${JSON.stringify(path)} is in the request twice.`)
      const directory = neighbour.is === 'beneath' ? formatPath(neighbour.other) : path
      throw fail('invalid_path', `${JSON.stringify(directory)} is a file and a directory at once.`)
    },
  }
}
