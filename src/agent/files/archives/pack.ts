// Packing files and directories of a server, into a file beside them or into a download.
import type { ArchiveFormat, FileEntry, FilesWork } from '../../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { TaskContext } from '../../tasks.ts'
import { writeContent } from '../content.ts'
import { describePath } from '../reading/entries.ts'
import { type Directory, lstatAt, type OpenFile, openChild, openFileAt, readlinkAt } from '../sandbox/directory.ts'
import { explained } from '../sandbox/errors.ts'
import type { EntryStats } from '../sandbox/looked.ts'
import { permissionsOf } from '../sandbox/ownership.ts'
import { formatPath, outermost, parseEntry, parsePath, type Segments, splitPath } from '../sandbox/paths.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { walk } from '../sandbox/walk.ts'
import type { ServerFiles } from '../server-files.ts'
import { createHoleBudget, type HoleBudget, requireReadable } from '../space/hole-budget.ts'
import { type ArchiveEntry, nothing } from './entry.ts'
import { writeArchive } from './formats.ts'

const CHUNK_BYTES = 256 * 1024

/** `paths` and all they hold, named relative to `root`. Symlinks stay symlinks; FIFOs, sockets and devices are left out. */
export async function* treeEntries(
  files: Sandbox,
  root: Segments,
  paths: readonly Segments[],
  signal?: AbortSignal,
): AsyncGenerator<ArchiveEntry> {
  const options = { share: files.share, signal, holes: createHoleBudget() }
  const turn = createTurns(files.share, signal)
  for (const path of paths) {
    if (turn.due()) await turn.take()
    if (path.length === 0) {
      using top = files.openDirectory(path)
      yield* beneath(top, 0, options)
      continue
    }
    using place = files.openPlace(path)
    const stats = explained(place.path, () => lstatAt(place.parent, place.name))
    yield* one(place.parent, place.name, path.slice(root.length).join('/'), options)
    if (!stats.isDirectory()) continue
    using directory = explained(place.path, () => openChild(place.parent, place.name))
    yield* beneath(directory, root.length, options)
  }
}

interface ReadOptions {
  share: string
  signal: AbortSignal | undefined
  holes: HoleBudget
}

async function* beneath(directory: Directory, depth: number, options: ReadOptions): AsyncGenerator<ArchiveEntry> {
  const { signal, share } = options
  for await (const { parent, name, path } of walk(directory, share, { sorted: true, ...(signal ? { signal } : {}) })) {
    signal?.throwIfAborted()
    yield* one(parent, name, splitPath(path).slice(depth).join('/'), options)
  }
}

function* one(parent: Directory, name: string, path: string, options: ReadOptions): Generator<ArchiveEntry> {
  try {
    const stats = lstatAt(parent, name)
    const common = { path, mode: permissionsOf(stats), modifiedAt: new Date(Number(stats.mtimeMs)) }
    if (stats.isDirectory()) yield { ...common, kind: 'directory', sizeBytes: 0, target: '', content: nothing }
    if (stats.isSymbolicLink())
      yield { ...common, kind: 'symlink', sizeBytes: 0, target: readlinkAt(parent, name), content: nothing }
    if (!stats.isFile()) return
    using file = openFileAt(parent, name)
    requireReadable(options.holes, JSON.stringify(path), file.stats)
    const content = () => contentOf(file, options.signal)
    yield { ...common, kind: 'file', sizeBytes: Number(file.stats.size), target: '', content }
  } catch (error) {
    // Gone or become something else since it was looked at: an archive of a tree in use holds what was there.
    if (!hasCode(error, 'ENOENT', 'EINVAL', 'ELOOP') && !isFailure(error, 'invalid_path')) throw error
  }
}

async function* contentOf(file: OpenFile, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    signal?.throwIfAborted()
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, Number(file.stats.size) - at)))
    const bytesRead = await file.read(buffer, 0, buffer.length, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

export type PackWork = Extract<FilesWork, { kind: 'files.pack' }>

export async function pack(server: ServerFiles, work: PackWork, context: TaskContext): Promise<FileEntry> {
  const { signal, report } = context
  const root = parsePath(work.root)
  const turn = createTurns(server.files.share, signal)
  const asked: Segments[] = []
  for (const entry of work.files) {
    if (turn.due()) await turn.take()
    asked.push(parseEntry(root, entry))
  }
  await turn.take()
  const paths = outermost(asked)
  if (paths.length === 0) throw fail('invalid_request', 'There is nothing to pack.')
  const target = work.target ?? formatPath([...root, archiveName(paths, work.format)])
  if (server.placements.find(context.taskId) === target) return describePath(server.files, target)
  report({ filesTotal: await count(server.files, await look(server.files, paths, signal), signal) })
  const archive = writeArchive(work.format, counted(treeEntries(server.files, root, paths, signal), report))
  try {
    const options = { overwrite: false, signal, workId: context.taskId }
    return (await writeContent(server, target, archive, options)).entry
  } finally {
    // Refused before it was read, it would keep what it has opened to be packed.
    archive.destroy()
  }
}

function archiveName(paths: readonly Segments[], format: ArchiveFormat): string {
  const stem = paths.length === 1 ? paths[0]?.at(-1) : 'archive'
  return `${stem}.${format}`
}

interface Looked {
  path: Segments
  stats: EntryStats
}

/** All of them are there before the first is counted. */
async function look(files: Sandbox, paths: readonly Segments[], signal: AbortSignal): Promise<Looked[]> {
  const turn = createTurns(files.share, signal)
  const found: Looked[] = []
  for (const path of paths) {
    if (turn.due()) await turn.take()
    found.push({ path, stats: files.lstat(path) })
  }
  return found
}

/** Refuses what cannot be packed before any of it is. */
async function count(files: Sandbox, found: readonly Looked[], signal: AbortSignal): Promise<number> {
  const holes = createHoleBudget()
  let total = 0
  const add = (path: string, stats: EntryStats) => {
    total++
    if (stats.isFile()) requireReadable(holes, JSON.stringify(path), stats)
  }
  const turn = createTurns(files.share, signal)
  for (const { path, stats } of found) {
    if (turn.due()) await turn.take()
    add(formatPath(path), stats)
    if (!stats.isDirectory()) continue
    for await (const entry of files.walk(path, { signal })) add(entry.path, entry.stats)
  }
  return total
}

async function* counted(entries: AsyncIterable<ArchiveEntry>, report: TaskContext['report']) {
  let filesDone = 0
  let bytesDone = 0
  for await (const entry of entries) {
    yield entry
    bytesDone += entry.sizeBytes
    report({ filesDone: ++filesDone, bytesDone })
  }
}
