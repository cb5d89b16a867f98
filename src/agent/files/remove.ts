// Deleting: everything is checked before anything is touched, then each thing is one rename into the trash.
import { isFailure } from '../../contract/errors.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { newId } from '../../kit/ids.ts'
import { type Change, journaled } from './changes/changes.ts'
import { deleteProperties } from './changes/probes.ts'
import { type CheckedEntry, type NamedEntry, withEntries } from './named-entries.ts'
import { kindOf } from './reading/entries.ts'
import { type Directory, fsyncDirectory, renameAt } from './sandbox/directory.ts'
import { explain } from './sandbox/errors.ts'
import { formatPath, outermostBy, type Segments } from './sandbox/paths.ts'
import type { ServerFiles } from './server-files.ts'
import { type Amount, NOTHING } from './space/amounts.ts'
import { sizeOfBatch, slotName, type TrashRecord } from './trash/trash-records.ts'

/** One request may name things in a thousand directories: no more descriptors than this for it. */
const PARENTS_AT_ONCE = 32

interface Doomed extends NamedEntry {
  kind: TrashRecord['items'][number]['kind']
}

export async function remove(
  server: ServerFiles,
  request: { root: string; files: string[] },
  change: Change,
): Promise<{ deleted: string[]; missing: string[] }> {
  using _held = server.lock.share()
  return await withEntries(server, request, (checked) => removeEntries(server, request.root, checked, change))
}

async function removeEntries(
  server: ServerFiles,
  root: string,
  entries: CheckedEntry[],
  change: Change,
): Promise<{ deleted: string[]; missing: string[] }> {
  const found: Doomed[] = entries.flatMap(({ stats, ...named }) => (stats ? [{ ...named, kind: kindOf(stats) }] : []))
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
  let record = NOTHING
  const deleted = await journaled(server, change, { op: 'deleted', root, batch, items }, async (durable) => {
    const { gone, recordSize } = await moveToTrash(server, doomed, batch, durable)
    record = recordSize
    const done = answer(gone)
    return { answer: done, properties: done.deleted.length > 0 ? deleteProperties(root, done.deleted) : null }
  })
  await server.usage.offset(record, async (item) => item.batch !== batch)
  return deleted
}

/** Answers also the entries that turned out to be gone when their turn came. */
async function moveToTrash(
  server: ServerFiles,
  doomed: Doomed[],
  batchId: string,
  durable: Promise<void>,
): Promise<{ gone: Set<string>; recordSize: Amount }> {
  const items = doomed.map(({ segments, kind }) => ({ path: formatPath(segments), kind }))
  using batch = await server.trash.prepare('deleted', items, batchId)
  await durable
  const recordSize = sizeOfBatch(batch.folder)
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
  return { gone, recordSize }
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
