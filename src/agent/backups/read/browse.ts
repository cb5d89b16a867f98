// Looks into backups: lists a directory, finds a file's versions, compares two trees.
import type { BackupChange, BackupEntry, FileVersion } from '../../../contract/agent/agent-backups.ts'
import { fail, isFailure } from '../../../contract/errors.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { readlinkAt } from '../../files/sandbox/directory.ts'
import { formatPath, parsePath } from '../../files/sandbox/paths.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { asIfWhole } from '../format/block-runs.ts'
import { type Entry, type KeyedEntry, orderKey } from '../format/entries.ts'
import type { Manifest } from '../format/manifest.ts'
import { openManifest } from '../format/manifest.ts'
import { manifestNames } from '../store/manifests.ts'
import type { Repository } from '../store/repository.ts'
import { describedBy, newEntry } from '../tree/backup-entries.ts'
import { createIgnoreRules } from '../tree/ignore-rules.ts'
import { isUnchanged } from '../tree/unchanged.ts'
import { hasSameContent } from '../workers/same-content.ts'

export function present(entry: Entry): BackupEntry {
  const { path, kind, sizeBytes, target } = entry
  const mode = entry.mode.toString(8).padStart(4, '0')
  const modifiedAt = new Date(Number(entry.mtimeNs / 1_000_000n)).toISOString()
  return { name: path.slice(path.lastIndexOf('/') + 1), path, kind, sizeBytes, modifiedAt, mode, target }
}

/** What a directory in the backup holds, by name, `limit` at a time, after the name `after`. */
export async function listDirectory(
  manifest: Manifest,
  path: string,
  page: { limit: number; after: string | null },
): Promise<{ entries: BackupEntry[]; next: string | null }> {
  const directory = formatPath(parsePath(path))
  const prefix = directory === '/' ? '' : `${orderKey(directory)}\0`
  if (directory !== '/') await requireDirectory(manifest, directory)
  const entries: BackupEntry[] = []
  // Beyond everything beneath the last name: \1 follows the separator.
  let from = page.after === null ? prefix : `${prefix}${orderKey(`/${page.after}`)}\u0001`
  for (;;) {
    const entry = await nextEntry(manifest, from)
    if (!entry?.key.startsWith(prefix) || entry.key === '') return { entries, next: null }
    const isChild = !entry.key.includes('\0', prefix.length)
    if (isChild) {
      if (entries.length === page.limit) return { entries, next: entries.at(-1)?.name ?? null }
      entries.push(present(entry))
    }
    const end = isChild ? entry.key.length : entry.key.indexOf('\0', prefix.length)
    from = entry.kind === 'directory' || !isChild ? `${entry.key.slice(0, end)}\u0001` : `${entry.key}\0`
  }
}

async function nextEntry(manifest: Manifest, from: string): Promise<KeyedEntry | undefined> {
  for await (const entry of manifest.entries(from)) return entry
  return undefined
}

async function requireDirectory(manifest: Manifest, path: string): Promise<void> {
  const entry = await manifest.find(path)
  if (!entry) throw fail('not_found', `The backup holds no ${JSON.stringify(path)}.`)
  if (entry.kind !== 'directory')
    throw fail('invalid_path', `${JSON.stringify(path)} is not a directory in the backup.`)
}

export async function requireFile(manifest: Manifest, path: string): Promise<KeyedEntry> {
  const entry = await manifest.find(formatPath(parsePath(path)))
  if (!entry) throw fail('not_found', `The backup holds no ${JSON.stringify(path)}.`)
  if (entry.kind !== 'file') throw fail('invalid_path', `${JSON.stringify(path)} is not a file in the backup.`)
  return entry
}

/** Which backups hold the path, newest first, and which of them hold the same content. */
export async function fileVersions(repository: Repository, serverId: string, path: string): Promise<FileVersion[]> {
  const wanted = formatPath(parsePath(path))
  const versions: FileVersion[] = []
  for (const name of await manifestNames(repository, serverId)) {
    try {
      const manifest = await openManifest(repository.blobs, repository.sealer, name)
      const entry = await manifest.find(wanted)
      if (!entry) continue
      const version = repository.sealer
        .idOf(Buffer.from(contentKey(entry), 'latin1'))
        .toString('hex')
        .slice(0, 16)
      versions.push({ ...present(entry), backupId: name.backupId, createdAt: manifest.meta.createdAt, version })
    } catch (error) {
      if (!isFailure(error, 'not_found')) throw error
    }
  }
  return versions.sort((a, b) => b.createdAt - a.createdAt || (a.backupId < b.backupId ? 1 : -1))
}

function contentKey(entry: Entry): string {
  return `${entry.kind} ${entry.sizeBytes} ${entry.target ?? ''} ${Buffer.from(asIfWhole(entry.content)).toString('latin1')}`
}

/** In order of path, `limit` at a time, after the path `after`. */
export async function compareBackups(
  from: Manifest,
  to: Manifest,
  page: { limit: number; after: string | null },
  signal: AbortSignal,
): Promise<{ changes: BackupChange[]; next: string | null }> {
  const start = page.after === null ? '' : `${orderKey(page.after)}\0`
  const options = { share: from.meta.serverId, limit: page.limit, signal }
  return await merge(from.entries(start), to.entries(start), options, isSameEntry)
}

/** A backup and the tree as it is. A file with other times is read, and counts as changed only if its content is. */
export async function compareWithLive(
  repository: Repository,
  from: Manifest,
  sandbox: Sandbox,
  page: { limit: number; after: string | null },
  signal: AbortSignal,
): Promise<{ changes: BackupChange[]; next: string | null }> {
  const start = page.after === null ? '' : `${orderKey(page.after)}\0`
  const pool = repository.pool.of(from.meta.serverId)
  const isSame = async (before: KeyedEntry, now: KeyedEntry) => {
    if (before.kind !== 'file' || now.kind !== 'file' || before.sizeBytes !== now.sizeBytes)
      return isSameEntry(before, now)
    if (isUnchanged(now, before)) return true
    using file = sandbox.openFile(now.path)
    return await file.use((fd) => hasSameContent(pool, fd, before, signal))
  }
  return await merge(
    from.entries(start),
    liveEntries(from, sandbox, start, signal),
    { share: sandbox.share, limit: page.limit, signal },
    isSame,
  )
}

async function* liveEntries(
  manifest: Manifest,
  sandbox: Sandbox,
  start: string,
  signal: AbortSignal,
): AsyncGenerator<KeyedEntry, void, undefined> {
  const rules = createIgnoreRules(manifest.meta.ignored)
  const enter = ({ path }: { path: string }) => !rules.isIgnored(path, true)
  for await (const found of sandbox.walk('/', { sorted: true, signal, enter })) {
    const { path, stats } = found
    const key = orderKey(path)
    const isKnown = stats.isFile() || stats.isDirectory() || stats.isSymbolicLink()
    if (key < start || !isKnown || rules.isIgnored(path, stats.isDirectory())) continue
    const kind = stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : 'symlink'
    const target = kind === 'symlink' ? readlinkAt(found.parent, found.name) : null
    yield { ...describedBy(newEntry(path, kind), found), key, target, isSettled: true }
  }
}

function isSameEntry(a: Entry, b: Entry): boolean {
  return (
    a.kind === b.kind &&
    a.target === b.target &&
    a.sizeBytes === b.sizeBytes &&
    Buffer.from(asIfWhole(a.content)).equals(asIfWhole(b.content))
  )
}

async function merge(
  from: AsyncGenerator<KeyedEntry, void, undefined>,
  to: AsyncGenerator<KeyedEntry, void, undefined>,
  { share, limit, signal }: { share: string; limit: number; signal: AbortSignal },
  isSame: (before: KeyedEntry, now: KeyedEntry) => boolean | Promise<boolean>,
): Promise<{ changes: BackupChange[]; next: string | null }> {
  const turn = createTurns(share, signal)
  const changes: BackupChange[] = []
  let [left, right] = [await from.next(), await to.next()]
  try {
    while (!left.done || !right.done) {
      if (turn.due()) await turn.take()
      const before = left.done ? undefined : left.value
      const now = right.done ? undefined : right.value
      const isRemoved = before !== undefined && (now === undefined || before.key < now.key)
      const isAdded = now !== undefined && (before === undefined || now.key < before.key)
      const change = isRemoved ? 'removed' : isAdded ? 'added' : 'changed'
      const differs = isRemoved || isAdded || (before && now && !(await isSame(before, now)))
      const shown = isAdded ? now : (before ?? now)
      if (differs && shown) {
        if (changes.length === limit) return { changes, next: changes.at(-1)?.path ?? null }
        const fromBytes = isAdded ? null : (before?.sizeBytes ?? null)
        changes.push({
          path: shown.path,
          kind: shown.kind,
          change,
          fromBytes,
          toBytes: isRemoved ? null : (now?.sizeBytes ?? null),
        })
      }
      if (!isAdded) left = await from.next()
      if (!isRemoved) right = await to.next()
    }
    return { changes, next: null }
  } finally {
    await from.return()
    await to.return()
  }
}
