// What a request names by a directory and entries relative to it: all of it is checked before any of it is touched.
import type { BigIntStats } from 'node:fs'
import { fail, isFailure } from '../../contract/errors.ts'
import { createTurns } from '../../kit/waiting/turns.ts'
import { createFieldFaults } from './field-faults.ts'
import { statsIfThere } from './sandbox/directory.ts'
import { formatPath, parseEntry, parsePath, type Segments } from './sandbox/paths.ts'
import type { Place } from './sandbox/sandbox.ts'
import { createMountCheck } from './sandbox/walk.ts'
import type { ServerFiles } from './server-files.ts'

export interface NamedEntry {
  /** As the caller wrote it. */
  entry: string
  /** Of the request, for its faults. */
  field: string
  segments: Segments
}

export interface CheckedEntry extends NamedEntry {
  /** Undefined where nothing is there. */
  stats: BigIntStats | undefined
}

/** Runs `work` when no other change has any of them, with each as it is then. Follows nothing, and refuses mount points. */
export async function withEntries<T>(
  server: ServerFiles,
  request: { root: string; files: readonly string[] },
  work: (checked: CheckedEntry[]) => Promise<T>,
): Promise<T> {
  const { root, entries } = parse(request)
  const claimed = entries.map(({ segments }) => formatPath(segments))
  return await server.claims.alone(
    () => claimed,
    async () => await work(await check(server, root, entries)),
  )
}

/** Of an entry that is there twice, the first. */
function parse(request: { root: string; files: readonly string[] }): { root: Segments; entries: NamedEntry[] } {
  const faults = createFieldFaults()
  const root = faults.check('/root', () => parsePath(request.root)) ?? []
  const entries = new Map<string, NamedEntry>()
  for (const [index, entry] of request.files.entries()) {
    const field = `/files/${index}`
    const segments = faults.check(field, () => parseEntry(root, entry))
    if (segments && !entries.has(entry)) entries.set(entry, { entry, field, segments })
  }
  faults.refuse()
  return { root, entries: [...entries.values()] }
}

async function check(server: ServerFiles, root: Segments, entries: NamedEntry[]): Promise<CheckedEntry[]> {
  const checked: CheckedEntry[] = []
  const faults = createFieldFaults()
  const turn = createTurns(server.files.share)
  // First: a root that cannot be opened is at fault itself, and not all that is named below it.
  faults.check('/root', () => requireOpens(server, root))
  faults.refuse()
  for (const named of entries) {
    if (turn.due()) await turn.take()
    checked.push({ ...named, stats: faults.check(named.field, () => look(server, named.segments)) })
  }
  faults.refuse()
  return checked
}

/** What is not there yet is no fault. */
function requireOpens(server: ServerFiles, root: Segments): void {
  try {
    using _root = server.files.openDirectory(root)
  } catch (error) {
    if (!isFailure(error, 'not_found')) throw error
  }
}

function look(server: ServerFiles, segments: Segments): BigIntStats | undefined {
  let place: Place
  try {
    place = server.files.openPlace(segments)
  } catch (error) {
    if (isFailure(error, 'not_found')) return undefined
    throw error
  }
  using opened = place
  const stats = statsIfThere(opened.parent, opened.name)
  if (stats?.isDirectory() && createMountCheck(opened.parent).isCrossing(opened.parent, opened.name, stats))
    throw fail('invalid_path', `${JSON.stringify(opened.path)} is a mount point.`)
  return stats
}
