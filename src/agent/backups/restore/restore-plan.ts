// What a restore has to do: the live tree and the manifest side by side, in the same order.
import { fail } from '../../../contract/errors.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { createFieldFaults } from '../../files/field-faults.ts'
import { type Directory, lstatAt, readlinkAt } from '../../files/sandbox/directory.ts'
import type { EntryStats } from '../../files/sandbox/looked.ts'
import { formatPath, outermost, parsePath, type Segments } from '../../files/sandbox/paths.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { type KeyedEntry, orderKey } from '../format/entries.ts'
import type { Manifest } from '../format/manifest.ts'
import { createIgnoreRules } from '../tree/ignore-rules.ts'

export interface LiveEntry {
  path: string
  key: string
  /** Open until the step has been taken. */
  parent: Directory
  name: string
  stats: EntryStats
}

export type Step =
  | { kind: 'create'; wanted: KeyedEntry }
  /** Both have the path and are of one kind; whether they are the same is for the caller to find out. */
  | { kind: 'compare'; wanted: KeyedEntry; live: LiveEntry }
  /** Of another kind: the live one goes, with all it holds. */
  | { kind: 'replace'; wanted: KeyedEntry; live: LiveEntry }
  | { kind: 'remove'; live: LiveEntry }

export interface PlanRequest {
  manifest: Manifest
  sandbox: Sandbox
  paths: string[] | null
  mode: 'replace' | 'merge'
  signal: AbortSignal
}

/** The chosen paths, none within another. */
export function chosenRoots(paths: string[] | null): Segments[] {
  return outermost((paths ?? ['/']).map((path) => parsePath(path)))
}

/** Takes a step; a promise where others have to wait before they are taken. */
export type Take = (step: Step) => Promise<void> | undefined

/** Not a generator: to wait at each of a million entries would cost more than to look at it. */
export async function planRestore(request: PlanRequest, take: Take): Promise<void> {
  for (const root of chosenRoots(request.paths)) {
    await planParents(request, root, take)
    await planSubtree(request, root, take)
  }
}

/** Directories above a chosen path that are not there any more. */
async function planParents({ manifest, sandbox }: PlanRequest, root: Segments, take: Take): Promise<void> {
  for (let depth = 1; depth < root.length; depth++) {
    const path = formatPath(root.slice(0, depth))
    const wanted = await manifest.find(path)
    if (wanted?.kind !== 'directory') throw notInBackup(formatPath(root))
    let exists = true
    try {
      sandbox.openDirectory(path)[Symbol.dispose]()
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'not_found')) throw error
      exists = false
    }
    if (!exists) await take({ kind: 'create', wanted })
  }
}

async function planSubtree(request: PlanRequest, root: Segments, take: Take): Promise<void> {
  const { manifest, mode, signal } = request
  const turn = createTurns(request.sandbox.share, signal)
  const rules = createIgnoreRules(manifest.meta.ignored)
  /** The directory, live, whose content is not to be looked at. */
  let closed: string | undefined
  using live = liveEntries(request, root, (path) => path !== closed)
  const nextWanted = wantedEntries(manifest, root)
  let left = live.next()
  let there = await nextWanted()
  if (!there && root.length > 0) throw notInBackup(formatPath(root))
  while (!left.done || there) {
    if (turn.due()) await turn.take()
    const here = left.done ? undefined : left.value
    if (there && (!here || there.key < here.key)) {
      const waits = take({ kind: 'create', wanted: there })
      if (waits) await waits
      const next = nextWanted()
      there = next instanceof Promise ? await next : next
    } else if (here && (!there || here.key < there.key)) {
      const isDirectory = here.stats.isDirectory()
      const isKept = mode === 'merge' || rules.isIgnored(here.path, isDirectory) || !isOurs(here.stats)
      if (isDirectory) closed = here.path
      if (!isKept) await take({ kind: 'remove', live: here })
      left = live.next()
    } else if (here && there) {
      const isSameKind = kindOf(here.stats) === there.kind
      if (!isSameKind && here.stats.isDirectory()) closed = here.path
      const waits = take({ kind: isSameKind ? 'compare' : 'replace', wanted: there, live: here })
      if (waits) await waits
      left = live.next()
      const next = nextWanted()
      there = next instanceof Promise ? await next : next
    }
  }
}

/** FIFOs, sockets and devices are in no backup, so that they are not in this one says nothing. */
const isOurs = (stats: EntryStats) => kindOf(stats) !== undefined

function kindOf(stats: EntryStats): KeyedEntry['kind'] | undefined {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  return stats.isSymbolicLink() ? 'symlink' : undefined
}

/** Each call answers the next, and undefined at the end. A promise only where something must be waited for. */
function wantedEntries(
  manifest: Manifest,
  root: Segments,
): () => KeyedEntry | undefined | Promise<KeyedEntry | undefined> {
  const key = orderKey(formatPath(root))
  const entries = manifest.stream(key)
  const within = (entry: KeyedEntry | undefined) =>
    entry && (key === '' || entry.key === key || entry.key.startsWith(`${key}\0`)) ? entry : undefined
  return () => {
    const next = entries.next()
    return next instanceof Promise ? next.then(within) : within(next)
  }
}

function* liveEntries(
  { sandbox }: PlanRequest,
  root: Segments,
  isOpen: (path: string) => boolean,
): Generator<LiveEntry, void, undefined> {
  if (root.length > 0) {
    using place = openPlaceIfThere(sandbox, root)
    if (!place) return
    const { parent, name } = place
    const stats = lstatAt(parent, name)
    yield { path: formatPath(root), key: orderKey(formatPath(root)), parent, name, stats }
    if (!stats.isDirectory() || !isOpen(formatPath(root))) return
  }
  const enter = ({ path }: { path: string }) => isOpen(path)
  using tree = sandbox.openWalk(root, { sorted: true, enter })
  for (let found = tree.next(); found; found = tree.next()) {
    const { parent, name, path, stats, isMountPoint } = found
    if (!isMountPoint) yield { path, key: orderKey(path), parent, name, stats }
  }
}

function openPlaceIfThere(sandbox: Sandbox, path: Segments) {
  try {
    const place = sandbox.openPlace(path)
    try {
      lstatAt(place.parent, place.name)
      return place
    } catch (error) {
      place[Symbol.dispose]()
      throw error
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'not_found' || error.code === 'ENOENT'))
      return undefined
    throw error
  }
}

/** Before anything is done for a restore of these paths. In their order, so that no part of the manifest is read twice. */
export async function requirePaths(manifest: Manifest, paths: readonly string[]): Promise<void> {
  const faults = createFieldFaults()
  const parsed = paths.map((text, index) => faults.check(`/paths/${index}`, () => parsePath(text)) ?? [])
  faults.refuse()
  const keyed = parsed.map(formatPath).map((path) => ({ path, key: orderKey(path) }))
  for (const { path } of keyed.sort((a, b) => (a.key < b.key ? -1 : 1)))
    if (path !== '/' && !(await manifest.find(path))) throw notInBackup(path)
}

export function targetOf(live: LiveEntry): string {
  return readlinkAt(live.parent, live.name)
}

function notInBackup(path: string) {
  return fail('not_found', `The backup holds no ${JSON.stringify(path)}.`)
}
