// What a request names by a directory and entries relative to it: all of it is checked before any of it is touched.
import type { BigIntStats } from 'node:fs'
import { fail, isFailure } from '../../contract/errors.ts'
import { createTurns } from '../../kit/waiting/turns.ts'
import { statsIfThere } from './sandbox/directory.ts'
import { formatPath, parseEntry, parsePath, type Segments } from './sandbox/paths.ts'
import type { Place } from './sandbox/sandbox.ts'
import { createMountCheck } from './sandbox/walk.ts'
import type { ServerFiles } from './server-files.ts'

export interface NamedEntry {
  /** As the caller wrote it. */
  entry: string
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
  const root = parsePath(request.root)
  const entries = [...new Set(request.files)].map((entry) => ({ entry, segments: parseEntry(root, entry) }))
  const claimed = entries.map(({ segments }) => formatPath(segments))
  return await server.claims.alone(
    () => claimed,
    async () => await work(await check(server, entries)),
  )
}

async function check(server: ServerFiles, entries: NamedEntry[]): Promise<CheckedEntry[]> {
  const checked: CheckedEntry[] = []
  const turn = createTurns(server.files.share)
  for (const named of entries) {
    if (turn.due()) await turn.take()
    checked.push({ ...named, stats: look(server, named.segments) })
  }
  return checked
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
