// Restores a backup: plans, stages, syncs, commits a journal, and swaps by renames. What is unchanged is not touched. Up to
// the commit any failure leaves the files as they were; from then on restore-finish.ts brings it to an end.
import { mkdirSync } from 'node:fs'
import type { RestoreReport } from '../../../contract/agent/agent-backups.ts'
import { fail } from '../../../contract/errors.ts'
import { openDescriptor } from '../../../kit/files/descriptor.ts'
import { isDiskFull } from '../../../kit/files/errno.ts'
import { addressOf, openChild, openRoot } from '../../files/sandbox/directory.ts'
import { keptModeOf } from '../../files/sandbox/ownership.ts'
import { childPath, isWithin, type Segments } from '../../files/sandbox/paths.ts'
import { removeTree } from '../../files/sandbox/remove-tree.ts'
import { type Amount, BLOCK_BYTES, NOTHING, sum } from '../../files/space/amounts.ts'
import { type KeyedEntry, segmentsOf } from '../format/entries.ts'
import type { Manifest } from '../format/manifest.ts'
import type { Repository } from '../store/repository.ts'
import { isUnchangedFile, OPEN_FILE } from '../tree/unchanged.ts'
import { type Attributes, attributesFrom, attributesOf } from './restore-attributes.ts'
import { type Checked, type Checks, createChecks } from './restore-checks.ts'
import { expectRestore } from './restore-fetch.ts'
import { finishSwap, folderOf } from './restore-finish.ts'
import { BATCH_ITEMS, createJournal, type JournalWriter } from './restore-journal.ts'
import { chosenRoots, type LiveEntry, type PlanRequest, planRestore, type Step, targetOf } from './restore-plan.ts'
import { createRoom, type Room } from './restore-room.ts'
import { createStager, type Stager } from './restore-stage.ts'
import type { RestoreTarget } from './restore-target.ts'
import { createPlaces, spreadWithin } from './spread.ts'
import { createWantedPlaces, type WantedDirectory, type WantedPlace } from './wanted-places.ts'

/** Node sets times to within a microsecond. */
const TIME_SLACK_NS = 1_000n

export interface RestoreRequest {
  /** Of the job that wants it: the outcome of the restore is known under this id. */
  jobId: string
  manifest: Manifest
  mode: 'replace' | 'merge'
  paths: string[] | null
  /** The live tree is the one that was backed up, so equal inodes and times mean equal files. */
  isOrigin: boolean
  /** Of what was there just before, if there is one: what is displaced is freed for the quota only if it is in there. */
  safetyBackupId: string | null
}

/** Something is put into it. */
interface TouchedDirectory extends WantedDirectory {
  /** In staging, where the restore makes the directory itself. */
  staged?: { folder: number; addInside: ReturnType<JournalWriter['inside']> }
}

interface Run {
  repository: Repository
  request: RestoreRequest
  roots: Segments[]
  journal: JournalWriter
  stager: Stager
  displaced: { path: string; kind: 'file' | 'directory' | 'symlink' }[]
  room: Room
  /** Directories and all else that is made, apart from the bytes of files. */
  made: Amount
  /** Paths, live, that stay as they are: what a further hard link may be one of. */
  kept: Map<string, bigint>
  /** Those whose times or modes must be set at the end, once everything in them is in place. */
  directories: { path: string; attributes: Attributes; before: Attributes | null; isAsWanted: boolean }[]
  /** Of directories that are made: the folders in staging that stand for them. */
  folders: Map<string, number>
  /** By the key of an entry that is made. */
  placeOf(key: string): WantedPlace<TouchedDirectory>
  /** Directories in which something is put or taken away. */
  touched: Set<string>
  result: RestoreReport
  checks: Checks
}

export async function runRestore(
  repository: Repository,
  target: RestoreTarget,
  request: RestoreRequest,
  signal: AbortSignal,
  report: (filesDone: number, bytesDone: number) => void,
): Promise<RestoreReport> {
  mkdirSync(target.folders.staging, { recursive: true })
  using stagingRoot = openRoot(target.folders.staging)
  const name = folderOf(request.jobId)
  await removeTree(stagingRoot, name, { share: target.sandbox.share })
  await spreadWithin(stagingRoot)
  using places = createPlaces(stagingRoot)
  places.make(stagingRoot, name)
  using staging = openChild(stagingRoot, name)
  const result: RestoreReport = { filesRestored: 0, filesKept: 0, bytesRestored: 0, displaced: 0 }
  const pool = repository.pool.of(target.serverId)
  using fetch = repository.fetches.begin()
  const source = { repository, pool, fetch, serverId: target.serverId }
  const stager = createStager(source, staging, places, request.manifest.meta, (files, bytes) => {
    result.filesRestored += files
    result.bytesRestored += bytes
    report(result.filesRestored + result.filesKept, result.bytesRestored)
  })
  const journal = createJournal(staging)
  const run: Run = {
    repository,
    request,
    roots: chosenRoots(request.paths),
    journal,
    stager,
    result,
    displaced: [],
    made: { ...NOTHING },
    room: createRoom(target, { isRewind: isRewind(request), hasSafety: request.safetyBackupId !== null }),
    kept: new Map(),
    directories: [],
    folders: new Map(),
    placeOf: createWantedPlaces((directory) => touch(run, directory)),
    touched: new Set(),
    checks: createChecks({ pool, filesAtOnce: repository.filesAtOnce }, signal, (isSame, wanted, live) => {
      if (isSame) keep(run, wanted, live)
      else replace(run, wanted, live)
    }),
  }
  // Nothing may empty them before everything is in them: from the commit on the gate holds them.
  using batches = new DisposableStack()
  try {
    const { manifest, mode, paths } = request
    const plan = { manifest, sandbox: target.sandbox, mode, paths, signal }
    await expectRestore(source, plan, (hardLink) => isChosen(run, hardLink))
    await stageAll(run, plan)
    await stager.sync()
    signal.throwIfAborted()
    await run.room.require(madeBy(run))
    result.displaced = run.displaced.length
    const trashBatches = await prepareTrash(target, run.displaced, batches)
    const { jobId, safetyBackupId } = request
    const { backupId } = manifest.meta
    const head = { jobId, backupId, safetyBackupId, report: result, trashBatches, stagedCount: stager.count() }
    await journal.commit(head, stager.made())
    target.gate.hold(trashBatches)
    batches.dispose()
  } catch (error) {
    journal.retract()
    journal.close()
    await stager.abandon()
    await run.checks.abandon()
    await removeTree(stagingRoot, name, { share: target.sandbox.share })
    throw isDiskFull(error) ? fail('disk_full', 'The disk is full; nothing was restored.', error) : error
  }
  journal.close()
  // What is displaced stays, in the trash, so all that was staged is added.
  target.usage.add(madeBy(run))
  try {
    const { backupId } = request.manifest.meta
    await finishSwap(target, { stagingRoot, staging }, { jobId: request.jobId, backupId, direction: 'forward' })
    return result
  } finally {
    target.usage.touch()
  }
}

function isRewind({ mode, paths, isOrigin }: RestoreRequest): boolean {
  return isOrigin && mode === 'replace' && chosenRoots(paths).some((root) => root.length === 0)
}

async function stageAll(run: Run, plan: PlanRequest): Promise<void> {
  await planRestore(plan, (step) => {
    take(run, step)
    run.checks.settle()
    return run.checks.isFull() || run.stager.isFull() ? relieve(run, plan.signal) : undefined
  })
  await run.checks.finish()
  await run.stager.finish()
  // Deepest first, since whatever is put into a directory changes its times.
  for (const { path, attributes, before, isAsWanted } of run.directories.reverse()) {
    if (isAsWanted && !run.touched.has(path)) continue
    run.journal.add('meta', { path: segmentsOf(path), before, ...attributes })
  }
}

async function relieve(run: Run, signal: AbortSignal): Promise<void> {
  const { checks, stager, room } = run
  if (checks.isFull()) await checks.step()
  if (stager.isFull()) await stager.flush()
  await room.requirePossible(stager.diskBytes())
  signal.throwIfAborted()
}

function take(run: Run, step: Step): void {
  if (step.kind === 'remove') displace(run, step.live)
  else if (step.kind === 'create') create(run, step.wanted)
  else if (step.kind === 'replace') replace(run, step.wanted, step.live)
  else compare(run, step.wanted, step.live)
}

const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/')) || '/'

function displace(run: Run, { path, stats }: Checked): void {
  run.touched.add(parentOf(path))
  run.room.displaced({ path, stats })
  const kind = stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'symlink' : 'file'
  run.journal.add('displace', { path: segmentsOf(path), item: run.displaced.length, inode: String(stats.ino) })
  run.displaced.push({ path, kind })
}

function replace(run: Run, wanted: KeyedEntry, live: Checked): void {
  displace(run, live)
  create(run, wanted)
}

/** All that it adds to the disk. */
const madeBy = ({ made, stager }: Run): Amount => sum(made, { bytes: stager.diskBytes(), entries: 0 })

function touch(run: Run, directory: WantedDirectory): TouchedDirectory {
  run.touched.add(directory.path)
  const folder = run.folders.get(directory.path)
  if (folder === undefined) return directory
  return { ...directory, staged: { folder, addInside: run.journal.inside(directory.segments, folder) } }
}

function create(run: Run, wanted: KeyedEntry): void {
  const { directory, name } = run.placeOf(wanted.key)
  run.made.entries++
  if (wanted.kind === 'directory') {
    run.made.bytes += BLOCK_BYTES
    const folder = run.stager.addFolder()
    run.folders.set(childPath(directory.path, name), folder)
    run.journal.add('mkdir', { path: [...directory.segments, name], folder })
    noteDirectory(run, wanted, undefined)
  } else if (wanted.hardLink !== null && isChosen(run, wanted.hardLink)) {
    run.journal.add('link', { path: [...directory.segments, name], to: segmentsOf(wanted.hardLink) })
    run.result.filesRestored++
  } else {
    const staged = run.stager.add(wanted, name, directory.staged?.folder)
    if (directory.staged) directory.staged.addInside(name, staged)
    else run.journal.add('place', { path: [...directory.segments, name], staged })
  }
}

/** Not the entry itself, which holds on to its whole chunk of the manifest. */
function noteDirectory(run: Run, wanted: KeyedEntry, live: LiveEntry['stats'] | undefined): void {
  const isAsWanted = live !== undefined && hasAttributes(wanted, live)
  const before = live ? attributesFrom(live) : null
  run.directories.push({ path: wanted.path, attributes: attributesOf(wanted), before, isAsWanted })
}

function changeAttributes(run: Run, wanted: KeyedEntry, live: LiveEntry['stats']): void {
  const before = attributesFrom(live)
  run.journal.add('meta', { path: segmentsOf(wanted.path), before, ...attributesOf(wanted) })
}

/** A further link whose first is not part of this restore becomes a file of its own. */
function isChosen(run: Run, path: string): boolean {
  return run.roots.some((root) => isWithin(root, segmentsOf(path)))
}

function compare(run: Run, wanted: KeyedEntry, live: LiveEntry): void {
  if (wanted.kind === 'directory') {
    noteDirectory(run, wanted, live.stats)
    return
  }
  if (wanted.kind === 'symlink') {
    if (targetOf(live) !== wanted.target) replace(run, wanted, live)
    else if (!hasAttributes(wanted, live.stats)) changeAttributes(run, wanted, live.stats)
    return
  }
  const first = wanted.hardLink !== null && isChosen(run, wanted.hardLink) ? wanted.hardLink : null
  if (first !== null) {
    if (run.kept.get(first) === live.stats.ino) keep(run, wanted, live)
    else replace(run, wanted, live)
    return
  }
  // Two names of one file that were two files, or the other way round: made anew rather than told apart.
  if (run.request.isOrigin && isUnchangedFile(live.stats, wanted)) keep(run, wanted, live)
  else if (Number(live.stats.size) === wanted.sizeBytes && live.stats.nlink === 1n) {
    const file = openDescriptor(addressOf(live.parent, live.name), OPEN_FILE)
    run.checks.add(wanted, { path: live.path, stats: live.stats }, file)
  } else replace(run, wanted, live)
}

function keep(run: Run, wanted: KeyedEntry, { path, stats }: Checked): void {
  run.result.filesKept++
  if (stats.nlink > 1n) run.kept.set(path, stats.ino)
  if (!hasAttributes(wanted, stats)) changeAttributes(run, wanted, stats)
}

function hasAttributes(wanted: KeyedEntry, stats: LiveEntry['stats']): boolean {
  const gap = stats.mtimeNs - wanted.mtimeNs
  return (
    (Number(stats.mode) & 0o7777) === keptModeOf(wanted, wanted.kind === 'directory') &&
    Number(stats.uid) === wanted.uid &&
    Number(stats.gid) === wanted.gid &&
    gap < TIME_SLACK_NS &&
    gap > -TIME_SLACK_NS
  )
}

async function prepareTrash(target: RestoreTarget, displaced: Run['displaced'], held: DisposableStack) {
  const ids: string[] = []
  for (let at = 0; at < displaced.length; at += BATCH_ITEMS)
    ids.push(held.use(await target.prepareTrash(displaced.slice(at, at + BATCH_ITEMS))).id)
  return ids
}
