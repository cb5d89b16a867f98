// Goes through a server's tree for a backup: passes over what is as the last one lists it, and visits everything else.
import { fstatSync } from 'node:fs'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { type Directory, usesDescriptors } from '../../files/sandbox/directory.ts'
import type { EntryStats } from '../../files/sandbox/looked.ts'
import { showsNames } from '../../files/sandbox/names-show.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { isSomethingMountedBeneath, type WalkEntry } from '../../files/sandbox/walk.ts'
import { type Chunk, createOrderKeys, type Entry } from '../format/entries.ts'
import { decodeEntries } from '../format/entry-decoder.ts'
import type { Manifest } from '../format/manifest.ts'
import type { ManifestWriter } from '../format/manifest-writer.ts'
import { createManifestCursor } from '../store/manifest-cursor.ts'
import type { LatestBackup, Repository } from '../store/repository.ts'
import { describedBy, isReadable, newEntry } from '../tree/backup-entries.ts'
import { createIgnoreRules } from '../tree/ignore-rules.ts'
import type { Verdict } from '../tree/same-chunk.ts'
import { isAsItStands } from '../tree/unchanged.ts'
import type { Pool } from '../workers/pool.ts'
import { createChunkChecks } from './chunk-checks.ts'
import { createEntrySource, type EntrySourceDeps } from './entry-source.ts'
import { createPassing } from './passing.ts'

/** Entries that wait for one before them to be read. */
const PENDING_AT_MOST = 2048

export interface TreeWalk extends Pick<EntrySourceDeps, 'sink' | 'reader' | 'notes' | 'queue' | 'isWhole'> {
  repository: Repository
  sandbox: Sandbox
  request: { serverId: string; ignored: string }
  previous: Manifest | undefined
  manifest: Pick<ManifestWriter, 'replace' | 'usePatches'>
  pool: Pool
  signal: AbortSignal
}

/** Answers with what the top of the tree was just before it was looked at. */
export async function walkTree(walk: TreeWalk): Promise<Entry> {
  const { repository, sandbox, request, previous, manifest, pool, signal, reader, notes, queue, isWhole } = walk
  const { serverId, ignored } = request
  const { chunkBytes } = repository.manifestSizes
  using directory = sandbox.openDirectory('/')
  const seen = { seenAt: Date.now(), stats: fstatSync(directory.fd, { bigint: true }) }
  /** The next millisecond: a change just before the walk must not count. */
  const begunNs = BigInt(seen.seenAt + 1) * 1_000_000n
  const turn = createTurns(sandbox.share, signal)
  const latest = isWhole() ? repository.latest.get(serverId) : undefined
  using checks =
    previous?.meta.ignored === ignored && isListed(latest, directory, seen.stats)
      ? createChunkChecks({ top: directory, dev: seen.stats.dev, previous, chunkBytes, pool, turn })
      : undefined
  const before = previous && { places: previous.places, chunkAt: checks?.chunkAt ?? previous.chunkAt }
  const cursor = createManifestCursor(before, manifest.replace)
  const rules = createIgnoreRules(ignored)
  const isLeftOut = (found: WalkEntry) => rules.isIgnored(found.path, found.stats.isDirectory())
  const enter = (found: WalkEntry) => !isLeftOut(found) && isReadable(found, notes)
  const onGone = (path: string) => {
    notes.leftOut()
    if (!rules.isIgnored(path, false) && !rules.isIgnored(path, true))
      notes.warn(`${path} vanished before it was read.`)
  }
  const onCutOff = (path: string) => {
    notes.leftOut()
    notes.warn(
      `A directory far below ${path} was moved while it was read; some of what ${path} holds is not in the backup.`,
    )
  }
  using tree = sandbox.openWalk('/', { sorted: true, enter, lookers: pool.lookers, onGone, onCutOff })
  const keyOf = createOrderKeys()
  const isFull = () => reader.isFull() || queue.length > PENDING_AT_MOST

  async function relieve(): Promise<void> {
    while (isFull()) {
      await reader.step()
      await queue.drain()
    }
  }

  async function take(chunk: Chunk, { counts, changed }: NonNullable<Verdict>): Promise<boolean> {
    signal.throwIfAborted()
    if (!isWhole()) return false
    if (changed.length > 0) await takeOthers(chunk, new Set(changed))
    else queue.pushChunk(chunk, counts)
    await queue.drain()
    await relieve()
    return true
  }

  async function takeOthers(chunk: Chunk, changed: ReadonlySet<number>): Promise<void> {
    for (const entry of decodeEntries(chunk)) {
      if (turn.due()) await turn.take()
      if (!changed.has(entry.ordinal)) source.keep(entry)
      else {
        const found = tree.find(entry.key)
        if (!found) onGone(entry.path)
        else if (found.stats.isDirectory()) notes.leftOut()
        else source.revisit(found, entry)
      }
      if (isFull()) await relieve()
    }
  }

  const passing = previous && checks && createPassing({ previous, checks, tree, cursor, take })
  const onKept = (key: string) => passing?.onKept(key)
  const source = createEntrySource({ ...walk, serverId, cursor, onKept, onPatched: manifest.usePatches })
  await passing?.begin()
  for (;;) {
    if (turn.due()) await turn.take()
    const looks = tree.waits()
    if (looks) await looks
    const found = tree.next()
    if (!found) break
    if (isLeftOut(found)) continue
    if (isChangedSince(begunNs, found.stats)) notes.changed()
    const key = keyOf(found.parent.path, found.name)
    const passes = passing?.over(key)
    if (passes && (await passes)) continue
    const waits = source.visit(found, key)
    if (waits) await waits
    if (queue.length % 256 === 0 || reader.isFull()) await queue.drain()
    if (isFull()) await relieve()
  }
  await reader.finish()
  await queue.drain()
  if (isChangedSince(begunNs, fstatSync(directory.fd, { bigint: true }))) notes.changed()
  return describedBy(newEntry('/', 'directory'), seen)
}

/**
 * Whether a name in this directory has come or gone since. What was moved from here to where the walk has been already is in the backup
 * in neither place, and the next backup finds it.
 */
const isChangedSince = (begunNs: bigint, stats: Pick<EntryStats, 'isDirectory' | 'ctimeNs'>) =>
  stats.isDirectory() && stats.ctimeNs >= begunNs

/**
 * Whether all that the last backup does not list is known to be what its patterns say, so that what is new shows by the
 * directory that holds it. The first backup after a start finds that out anew.
 */
function isListed(latest: LatestBackup | undefined, top: Directory, stats: EntryStats): boolean {
  if (!latest?.isAll || !isAsItStands(stats, latest.top)) return false
  return usesDescriptors(top) && showsNames(top) && !isSomethingMountedBeneath(top)
}
