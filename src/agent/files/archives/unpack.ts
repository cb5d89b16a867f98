// Unpacking: everything into staging first, under limits, then moved into place. An archive that is refused, or a task
// that is cancelled, leaves nothing. Once something has moved, the rest follows, also after a crash.
import { fchmodSync, futimesSync, symlinkSync } from 'node:fs'
import type { FileEntry, FilesWork } from '../../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import {
  ARCHIVE_HARMLESS_BYTES,
  ARCHIVE_MAX_BYTES,
  ARCHIVE_MAX_ENTRIES,
  ARCHIVE_MAX_RATIO,
} from '../../../contract/fixed-limits.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { TaskContext } from '../../tasks.ts'
import { addressOf, createFileAt } from '../sandbox/directory.ts'
import { explain } from '../sandbox/errors.ts'
import { nameToDisk } from '../sandbox/names.ts'
import { giveTo, type Owner, permissionsOf } from '../sandbox/ownership.ts'
import { parsePath, refuseDepth, type Segments } from '../sandbox/paths.ts'
import type { Place, Sandbox } from '../sandbox/sandbox.ts'
import type { ServerFiles } from '../server-files.ts'
import { type Amount, BLOCK_BYTES, spaceOf } from '../space/amounts.ts'
import type { Reservation } from '../space/reservation.ts'
import { receiveBytes, spaceFrom } from '../uploads/receive.ts'
import { type ArchiveEntry, invalidArchive } from './entry.ts'
import { detectFormat, readArchive } from './formats.ts'
import { makeTree, place, placeRest } from './placing.ts'
import { createSyncs, type Syncs } from './syncs.ts'

export interface UnpackLimits {
  maxBytes: number
  maxEntries: number
  /** How many times its own size an archive may unpack to, beyond a size that could hurt nobody. */
  maxRatio: number
  harmlessBytes: number
}

export const UNPACK_LIMITS: UnpackLimits = {
  maxBytes: ARCHIVE_MAX_BYTES,
  maxEntries: ARCHIVE_MAX_ENTRIES,
  maxRatio: ARCHIVE_MAX_RATIO,
  harmlessBytes: ARCHIVE_HARMLESS_BYTES,
}

export type UnpackWork = Extract<FilesWork, { kind: 'files.unpack' }>

export async function unpack(
  server: ServerFiles,
  work: UnpackWork,
  { taskId, signal, report }: Pick<TaskContext, 'taskId' | 'signal' | 'report'>,
  limits: UnpackLimits = UNPACK_LIMITS,
): Promise<FileEntry> {
  const done = server.placements.resultOf(taskId)
  if (done) return done
  await using staged = server.staging.open()
  const rest = await placeRest(server, staged, taskId)
  if (rest) return rest
  const target = parsePath(work.directory)
  using archive = server.files.openFile(work.path)
  using reservation = await server.usage.announce(0, 0)
  const budget = createBudget(Number(archive.stats.size), limits, reservation)
  const tree = makeTree(server, staged, budget.madeDirectory)
  await asArchiveFaults(async () => {
    await using syncs = createSyncs(server.files.share, signal)
    const turn = createTurns(server.files.share, signal)
    let filesDone = 0
    for await (const entry of readArchive(detectFormat(archive), archive, {
      signal,
      turn,
      onInflated: budget.takeInflated,
    })) {
      signal.throwIfAborted()
      if (turn.due()) await turn.take()
      budget.takeEntry()
      await unpackEntry(tree, entry, { depth: target.length, budget, syncs, signal })
      await budget.reserveMade()
      report({ filesDone: ++filesDone, bytesDone: budget.bytes() })
    }
    await syncs.drain()
  })
  signal.throwIfAborted()
  const { directory, overwrite = false } = work
  const total = { bytes: budget.space(), entries: budget.made() }
  const clear = (beside: Amount) => reservation.clear(total.bytes, total.entries, beside)
  const entry = await place(server, staged, { workId: taskId, directory, overwrite, total }, { signal, clear })
  reservation.commit()
  return entry
}

interface Work {
  /** Of the directory that all of it goes to. */
  depth: number
  budget: ReturnType<typeof createBudget>
  syncs: Syncs
  signal: AbortSignal
}

function createBudget(archiveBytes: number, limits: UnpackLimits, reservation: Reservation) {
  const most = Math.min(limits.maxBytes, Math.max(limits.harmlessBytes, archiveBytes * limits.maxRatio))
  const allowance = spaceFrom(reservation)
  let entries = 0
  let inflated = 0
  let bytes = 0
  let space = 0
  let made = 0
  let reserved = 0
  let unreservedSpace = 0
  return {
    allowance,
    bytes: () => bytes,
    /** What the finished files and their directories take on the disk. */
    space: () => space,
    /** How many of both there are. */
    made: () => made,
    madeDirectory(): void {
      made++
      space += BLOCK_BYTES
      unreservedSpace += BLOCK_BYTES
    },
    madeFile(): void {
      made++
    },
    /** For what was made since, before more is. */
    async reserveMade(): Promise<void> {
      const growing = allowance.need(unreservedSpace, Number.POSITIVE_INFINITY)
      unreservedSpace = 0
      if (growing) await growing
      for (; reserved < made; reserved++) {
        const taking = reservation.takeEntry()
        if (taking) await taking
      }
    },
    takeEntry(): void {
      if (++entries > limits.maxEntries) throw invalidArchive('The archive holds too many entries.')
    },
    /** Also of headers, and of what is passed over: a bomb need not hold a single file. */
    takeInflated(length: number): void {
      inflated += length
      if (inflated > most) throw invalidArchive('The archive unpacks to far more than its size allows.')
    },
    async *counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of content) {
        bytes += chunk.length
        yield chunk
      }
    },
    /** A file takes whole blocks of the disk. */
    async endFile(size: number): Promise<void> {
      await allowance.need(spaceOf(size) - size, Number.POSITIVE_INFINITY)
      space += spaceOf(size)
    },
  }
}

async function unpackEntry(tree: Sandbox, entry: ArchiveEntry, work: Work): Promise<void> {
  const path = checkName(entry.path)
  if (path.length === 0) return
  refuseDepth({ length: work.depth + path.length })
  if (entry.kind === 'directory') {
    tree.openNewPlace([...path, 'x'], { anyName: true })[Symbol.dispose]()
    return
  }
  using place = tree.openNewPlace(path, { anyName: true })
  work.budget.madeFile()
  if (entry.kind === 'symlink') {
    unpackLink(place, path, entry.target)
    giveTo(tree.owner(), addressOf(place.parent, place.name))
  } else await unpackFile(place, entry, work, tree.owner())
}

/** `./a`, as tar writes it, is `a`; whatever else is not a plain relative path is refused. */
function checkName(path: string): Segments {
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) throw invalidArchive('The archive holds an absolute name.')
  return path === '' ? [] : parsePath(path)
}

/**
 * A link first leads upwards, through directories that are directories since nothing is written through a link, and then
 * down. A `..` after a name is refused: that name may be another link, of this archive or of a later one, and from where
 * that leads, `..` leads out. So links stay inside whatever comes before or after them.
 */
function unpackLink(place: Place, path: Segments, target: string): void {
  const leaves = () => invalidArchive('The archive holds a link that leaves it, or that could by way of another.')
  if (target === '' || target.startsWith('/')) throw leaves()
  const names = target.split('/').filter((name) => name !== '' && name !== '.')
  const down = names.findIndex((name) => name !== '..')
  const ups = down === -1 ? names.length : down
  if (ups >= path.length || names.indexOf('..', ups) !== -1) throw leaves()
  symlinkSync(nameToDisk(target), addressOf(place.parent, place.name))
}

async function unpackFile(
  place: Place,
  entry: ArchiveEntry,
  { budget, syncs, signal }: Work,
  owner: Owner | undefined,
): Promise<void> {
  using file = createFileAt(place.parent, place.name)
  const size = await receiveBytes(file, budget.counted(entry.content()), budget.allowance, { signal })
  if (size !== entry.sizeBytes) throw invalidArchive('An entry of the archive has another size than the archive says.')
  await budget.endFile(size)
  giveTo(owner, file.fd)
  fchmodSync(file.fd, permissionsOf(entry))
  futimesSync(file.fd, entry.modifiedAt, entry.modifiedAt)
  await syncs.add(file, size)
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
