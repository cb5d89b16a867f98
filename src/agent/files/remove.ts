// Deleting: everything is checked before anything is touched, then each thing is one rename into the trash.
import { fail, isFailure } from '../../contract/errors.ts'
import { hasCode } from '../../kit/errno.ts'
import { newId } from '../../kit/ids.ts'
import { createTurns } from '../../kit/turns.ts'
import { type Change, journaled } from './changes/changes.ts'
import { deleteProperties } from './changes/probes.ts'
import { kindOf } from './reading/entries.ts'
import { type Directory, fsyncDirectory, renameAt, statsIfThere } from './sandbox/directory.ts'
import { explain } from './sandbox/errors.ts'
import { formatPath, outermostBy, parseEntry, parsePath, type Segments } from './sandbox/paths.ts'
import type { Place } from './sandbox/sandbox.ts'
import { createMountCheck } from './sandbox/walk.ts'
import type { ServerFiles } from './server-files.ts'
import { slotName, type TrashRecord } from './trash/trash-records.ts'

/** One request may name things in a thousand directories: no more descriptors than this for it. */
const PARENTS_AT_ONCE = 32

interface Doomed {
  /** As the caller wrote it. */
  entry: string
  segments: Segments
  kind: TrashRecord['items'][number]['kind']
}

export async function remove(
  server: ServerFiles,
  request: { root: string; files: string[] },
  change: Change,
): Promise<{ deleted: string[]; missing: string[] }> {
  using _held = server.lock.share()
  const root = parsePath(request.root)
  const entries = [...new Set(request.files)].map((entry) => ({ entry, segments: parseEntry(root, entry) }))
  const claimed = entries.map(({ segments }) => formatPath(segments))
  return await server.claims.alone(
    () => claimed,
    () => removeEntries(server, request.root, entries, change),
  )
}

async function removeEntries(
  server: ServerFiles,
  root: string,
  entries: { entry: string; segments: Segments }[],
  change: Change,
): Promise<{ deleted: string[]; missing: string[] }> {
  const found: Doomed[] = []
  const turn = createTurns(server.files.share)
  for (const { entry, segments } of entries) {
    if (turn.due()) await turn.take()
    found.push(...look(server, entry, segments))
  }
  const doomed = outermostBy(found, ({ segments }) => segments)
  const names = new Set(found.map(({ entry }) => entry))
  const answer = (gone: ReadonlySet<string>) => {
    const { deleted = [], missing = [] } = Object.groupBy(
      entries.map(({ entry }) => entry),
      (entry) => (names.has(entry) && !gone.has(entry) ? 'deleted' : 'missing'),
    )
    return { deleted, missing }
  }
  if (doomed.length === 0) return answer(new Set())
  const batch = newId('trs')
  const items = doomed.map(({ entry }) => entry)
  return await journaled(server, change, { op: 'deleted', root, batch, items }, async (durable) => {
    const done = answer(await moveToTrash(server, doomed, batch, durable))
    return { answer: done, properties: done.deleted.length > 0 ? deleteProperties(root, done.deleted) : null }
  })
}

function look(server: ServerFiles, entry: string, segments: Segments): Doomed[] {
  let place: Place
  try {
    place = server.files.openPlace(segments)
  } catch (error) {
    if (isFailure(error, 'not_found')) return []
    throw error
  }
  using opened = place
  const stats = statsIfThere(opened.parent, opened.name)
  if (!stats) return []
  if (stats.isDirectory() && createMountCheck(opened.parent).isCrossing(opened.parent, opened.name, stats))
    throw fail('invalid_path', `${JSON.stringify(opened.path)} is a mount point.`)
  return [{ entry, segments, kind: kindOf(stats) }]
}

/** Answers the entries that turned out to be gone when their turn came. */
async function moveToTrash(
  server: ServerFiles,
  doomed: Doomed[],
  batchId: string,
  durable: Promise<void>,
): Promise<Set<string>> {
  const items = doomed.map(({ segments, kind }) => ({ path: formatPath(segments), kind }))
  using batch = await server.trash.prepare('deleted', items, batchId)
  await durable
  const gone = new Set<string>()
  const parents = new Map<string, Directory>()
  try {
    for (const [index, { entry, segments }] of doomed.entries()) {
      if (parents.size >= PARENTS_AT_ONCE) await syncAndClose(parents)
      const parent = openParent(server, segments.slice(0, -1), parents)
      const name = segments.at(-1) ?? ''
      if (!parent || !renamed(parent, name, batch.folder, slotName(index))) gone.add(entry)
    }
    server.usage.touch()
    await Promise.all([fsyncDirectory(batch.folder), syncAndClose(parents)])
  } finally {
    close(parents)
  }
  return gone
}

async function syncAndClose(parents: Map<string, Directory>): Promise<void> {
  await Promise.all([...parents.values()].map(fsyncDirectory))
  close(parents)
}

function close(parents: Map<string, Directory>): void {
  for (const parent of parents.values()) parent[Symbol.dispose]()
  parents.clear()
}

function openParent(server: ServerFiles, segments: Segments, opened: Map<string, Directory>): Directory | undefined {
  const path = formatPath(segments)
  const known = opened.get(path)
  if (known) return known
  try {
    const parent = server.files.openDirectory(segments)
    opened.set(path, parent)
    return parent
  } catch (error) {
    if (isFailure(error, 'not_found')) return undefined
    throw error
  }
}

function renamed(from: Directory, name: string, to: Directory, toName: string): boolean {
  try {
    renameAt(from, name, to, toName)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw explain(error, name)
  }
}
