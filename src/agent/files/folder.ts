// Making a directory, with what is missing above it.
import type { FileEntry } from '../../contract/agent/agent-files.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { type Change, journaled } from './changes/changes.ts'
import { createFieldFaults } from './field-faults.ts'
import { describeAt } from './reading/entries.ts'
import { openIfStillThere } from './sandbox/descent.ts'
import { type Directory, fsyncDirectory, statsIfThere } from './sandbox/directory.ts'
import { explained } from './sandbox/errors.ts'
import { checkNewName, formatPath, parseEntry, parsePath, type Segments } from './sandbox/paths.ts'
import type { Sandbox } from './sandbox/sandbox.ts'
import type { ServerFiles } from './server-files.ts'
import { directories, roomForParents } from './space/parents.ts'
import { countingGrowth } from './space/usage.ts'

export async function makeFolder(
  server: ServerFiles,
  request: { path: string; name: string },
  change: Change,
): Promise<{ entry: FileEntry; created: boolean }> {
  using _held = server.lock.share()
  const segments = parse(request)
  // The outermost of what is missing: whoever else wants any of it waits, and looks again.
  const claimed = () => missingOf(server, segments).slice(0, 1)
  return await server.claims.alone(claimed, async () => {
    const missing = missingOf(server, segments)
    if (missing.length === 0) return (await make(server, segments, missing)).answer
    if (!isBlocked(server, segments)) await requireRoom(server, missing.length)
    return await journaled(server, change, { op: 'folder', missing }, async (durable) => {
      await durable
      return await make(server, segments, missing)
    })
  })
}

function parse(request: { path: string; name: string }): Segments {
  const faults = createFieldFaults()
  const parent = faults.check('/path', () => parsePath(request.path)) ?? []
  const name = faults.check('/name', () => checkNewName(request.name)) ?? ''
  faults.refuse()
  return parseEntry(parent, name)
}

/** By something that is not a directory: refused where they are made. */
function isBlocked({ files }: ServerFiles, segments: Segments): boolean {
  return files.reach(segments).stats?.isDirectory() === false
}

/** Refused before anything is written down; the room is taken when they are made. */
async function requireRoom({ usage }: ServerFiles, count: number): Promise<void> {
  using _room = await usage.room(directories(count))
}

function missingOf({ files }: ServerFiles, segments: Segments): string[] {
  const { depth, stats } = files.reach(segments)
  if (depth < segments.length && stats?.isSymbolicLink())
    throw fail('invalid_path', 'The path leads through a symbolic link, which is not followed here.')
  for (const name of segments.slice(depth)) checkNewName(name)
  return segments.slice(depth).map((_, index) => formatPath(segments.slice(0, depth + index + 1)))
}

async function make(server: ServerFiles, segments: Segments, missing: string[]) {
  const { files } = server
  const name = segments.at(-1) ?? ''
  using _room = await roomForParents(server, [[...segments, '']])
  using parent = files.mkdirs(segments.slice(0, -1))
  const created = isMade(() => countingGrowth(server.usage, parent, () => files.makeDirectory(parent, name)))
  if (!created && !statsIfThere(parent, name)?.isDirectory())
    throw fail('already_exists', `${JSON.stringify(name)} exists and is not a directory.`)
  await syncWay(files, segments, missing.length)
  const entry = describeAt(parent, name)
  return { answer: { entry, created }, properties: created ? { path: entry.path } : null }
}

/** The directories that the last names of the path were made in, in one descent. */
async function syncWay(files: Sandbox, segments: Segments, made: number): Promise<void> {
  const above = segments.length - made
  let current: Directory | undefined = made > 0 ? files.openDirectory(segments.slice(0, above)) : undefined
  for (const name of segments.slice(above)) {
    // Somebody has taken it away since.
    if (!current) return
    using synced = current
    await fsyncDirectory(synced)
    current = openIfStillThere(synced, name)
  }
  current?.[Symbol.dispose]()
}

function isMade(make: () => void): boolean {
  try {
    explained('/', make)
    return true
  } catch (error) {
    if (isFailure(error, 'already_exists') || hasCode(error, 'EEXIST')) return false
    throw error
  }
}
