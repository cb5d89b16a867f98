// Unpacking: everything into staging first, under limits, then moved into place. An archive that is refused, or a task
// that is cancelled, leaves nothing.
import { chmodSync, futimesSync, symlinkSync, write } from 'node:fs'
import { promisify } from 'node:util'
import type { FileEntry, FilesWork } from '../../../contract/agent-files.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/errno.ts'
import type { TaskContext } from '../../tasks.ts'
import { addressOf, createFileAt, fsyncFile, mkdirAt } from '../directory.ts'
import { describePath } from '../entries.ts'
import { explain, explainedAsync } from '../errors.ts'
import { nameToDisk } from '../names.ts'
import { parsePath, type Segments } from '../paths.ts'
import { openSandbox, type Place, type Sandbox } from '../sandbox.ts'
import type { ServerFiles } from '../server-files.ts'
import { type Reservation, spaceOf } from '../usage.ts'
import { type ArchiveEntry, invalidArchive } from './entry.ts'
import { detectFormat, readArchive } from './formats.ts'
import { merge } from './merge.ts'

const writeAsync = promisify(write)

export interface UnpackLimits {
  maxBytes: number
  maxEntries: number
  /** How many times its own size an archive may unpack to, beyond a size that could hurt nobody. */
  maxRatio: number
  harmlessBytes: number
}

export const UNPACK_LIMITS: UnpackLimits = {
  maxBytes: 1024 ** 4,
  maxEntries: 1_000_000,
  maxRatio: 200,
  harmlessBytes: 64 * 1024 * 1024,
}

export type UnpackWork = Extract<FilesWork, { kind: 'files.unpack' }>

export async function unpack(
  server: ServerFiles,
  work: UnpackWork,
  { signal, report }: Pick<TaskContext, 'signal' | 'report'>,
  limits: UnpackLimits = UNPACK_LIMITS,
): Promise<FileEntry> {
  const target = parsePath(work.directory)
  using archive = server.files.openFile(work.path)
  await using staged = server.staging.open()
  using reservation = await server.usage.reserve(0)
  mkdirAt(staged.folder, staged.name)
  const tree = openSandbox(`${staged.folder.address}/${staged.name}`)
  const budget = createBudget(Number(archive.stats.size), limits, reservation)
  await asArchiveFaults(async () => {
    let filesDone = 0
    for await (const entry of readArchive(detectFormat(archive), archive)) {
      signal.throwIfAborted()
      await budget.take(0)
      await unpackEntry(tree, entry, budget, signal)
      report({ filesDone: ++filesDone, bytesDone: budget.bytes() })
    }
  })
  signal.throwIfAborted()
  await explainedAsync(work.directory, () => merge(server, tree, target, work.overwrite ?? false))
  reservation.commit(budget.space())
  return describePath(server.files, work.directory)
}

type Budget = ReturnType<typeof createBudget>

function createBudget(archiveBytes: number, limits: UnpackLimits, reservation: Reservation) {
  const most = Math.min(limits.maxBytes, Math.max(limits.harmlessBytes, archiveBytes * limits.maxRatio))
  let entries = 0
  let bytes = 0
  let space = 0
  return {
    bytes: () => bytes,
    space: () => space,
    /** Called with 0 for each entry, then with each piece of its content. */
    async take(more: number): Promise<void> {
      if (more === 0 && ++entries > limits.maxEntries) throw invalidArchive('The archive holds too many entries.')
      bytes += more
      if (bytes > most) throw invalidArchive('The archive unpacks to far more than its size allows.')
      if (more === 0) return
      await reservation.grow(spaceOf(more))
      space += spaceOf(more)
    },
  }
}

async function unpackEntry(tree: Sandbox, entry: ArchiveEntry, budget: Budget, signal: AbortSignal): Promise<void> {
  const path = checkName(entry.path)
  if (path.length === 0) return
  if (entry.kind === 'directory') {
    tree.openNewPlace([...path, 'x'], { anyName: true })[Symbol.dispose]()
    return
  }
  using place = tree.openNewPlace(path, { anyName: true })
  if (entry.kind === 'symlink') unpackLink(place, path, entry.target)
  else await unpackFile(place, entry, budget, signal)
}

/** `./a`, as tar writes it, is `a`; whatever else is not a plain relative path is refused. */
function checkName(path: string): Segments {
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) throw invalidArchive('The archive holds an absolute name.')
  const plain = path.replace(/^(\.\/+)+/, '')
  return plain === '' || plain === '.' ? [] : parsePath(plain)
}

function unpackLink(place: Place, path: Segments, target: string): void {
  const stack = [...path.slice(0, -1)]
  if (target === '' || target.startsWith('/')) throw invalidArchive('The archive holds a link that leaves it.')
  for (const name of target.split('/')) {
    if (name === '..' && stack.pop() === undefined) throw invalidArchive('The archive holds a link that leaves it.')
    if (name !== '..' && name !== '.' && name !== '') stack.push(name)
  }
  symlinkSync(nameToDisk(target), addressOf(place.parent, place.name))
}

async function unpackFile(place: Place, entry: ArchiveEntry, budget: Budget, signal: AbortSignal): Promise<void> {
  using file = createFileAt(place.parent, place.name)
  let size = 0
  for await (const chunk of entry.content()) {
    signal.throwIfAborted()
    size += chunk.length
    await budget.take(chunk.length)
    for (let at = 0; at < chunk.length; )
      at += (await writeAsync(file.fd, chunk, at, chunk.length - at, null)).bytesWritten
  }
  if (size !== entry.sizeBytes) throw invalidArchive('An entry of the archive has another size than the archive says.')
  chmodSync(file.address, entry.mode & 0o777)
  futimesSync(file.fd, entry.modifiedAt, entry.modifiedAt)
  await fsyncFile(file)
}

/** Inside staging there is nothing but what the archive put there: a name in the way is the archive's own fault. */
async function asArchiveFaults(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (isFailure(error, 'invalid_path')) throw invalidArchive(`The archive holds a bad name: ${error.detail}`, error)
    if (isFailure(error, 'already_exists') || hasCode(error, 'EEXIST', 'ENOTDIR', 'EISDIR'))
      throw invalidArchive('The archive holds the same name twice.', error)
    if (isFailure(error)) throw error
    if (error instanceof Error && 'code' in error && /^(Z_|ZSTD_|ERR_)/.test(String(error.code)))
      throw fail('invalid_archive', 'The archive is damaged or cut short.', error)
    throw explain(error, 'archive')
  }
}
