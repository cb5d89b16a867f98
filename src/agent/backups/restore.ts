// Restores a backup: plans, stages, syncs, commits a journal, and swaps by renames. What is unchanged is not touched.
import { mkdirSync, openSync, readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { RestoreReport } from '../../contract/agent-backups.ts'
import { fail } from '../../contract/errors.ts'
import { hasCode } from '../../kit/errno.ts'
import { newId } from '../../kit/ids.ts'
import { addressOf, type Directory, mkdirAt, openChild, openRoot } from '../files/directory.ts'
import { isWithin, type Segments } from '../files/paths.ts'
import { removeTree } from '../files/remove-tree.ts'
import type { Sandbox } from '../files/sandbox.ts'
import type { TrashBatch } from '../files/trash-records.ts'
import type { ServerFolders } from '../layout.ts'
import { isUnchanged, OPEN_FILE, touchOf } from './backup.ts'
import { type KeyedEntry, segmentsOf } from './entries.ts'
import type { Manifest } from './manifest.ts'
import { isDiskFull } from './pack-sink.ts'
import type { Repository } from './repository.ts'
import { type Attributes, attributesOf } from './restore-attributes.ts'
import { type Checked, type Checks, createChecks } from './restore-checks.ts'
import {
  BATCH_ITEMS,
  closeCommitment,
  createJournal,
  type JournalWriter,
  readCommitment,
  rollForward,
} from './restore-journal.ts'
import { chosenRoots, type LiveEntry, planRestore, type Step, targetOf } from './restore-plan.ts'
import { createStager, type Stager, syncFileSystem, syncPaths } from './restore-stage.ts'

const STAGED = 'restore-'
const COMPLETE_RETRIES = 12
const PASSING = ['ENOSPC', 'EDQUOT', 'EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'EBUSY', 'EAGAIN']
/** Node sets times to within a microsecond. */
const TIME_SLACK_NS = 1_000n

export interface RestoreRequest {
  manifest: Manifest
  mode: 'replace' | 'merge'
  paths: string[] | null
  /** The live tree is the one that was backed up, so equal inodes and times mean equal files. */
  isOrigin: boolean
}

export interface RestoreTarget {
  folders: Pick<ServerFolders, 'staging' | 'trash'>
  sandbox: Sandbox
  /** Writes down, durably, what is about to be moved into a new batch of the trash. At most 65,536 items. */
  prepareTrash(items: { path: string; kind: 'file' | 'directory' | 'symlink' }[]): Promise<TrashBatch>
}

interface Run {
  repository: Repository
  request: RestoreRequest
  roots: Segments[]
  journal: JournalWriter
  stager: Stager
  displaced: { path: string; kind: 'file' | 'directory' | 'symlink' }[]
  /** Paths, live, that stay as they are: what a further hard link may be one of. */
  kept: Map<string, bigint>
  /** Those whose times or modes must be set at the end, once everything in them is in place. */
  directories: { path: string; attributes: Attributes; isAsWanted: boolean }[]
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
  const name = `${STAGED}${newId('job')}`
  mkdirAt(stagingRoot, name, 0o700)
  using staging = openChild(stagingRoot, name)
  const result: RestoreReport = { filesRestored: 0, filesKept: 0, bytesRestored: 0, displaced: 0 }
  const stager = createStager(repository, staging, request.manifest.meta, (files, bytes) => {
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
    kept: new Map(),
    directories: [],
    touched: new Set(),
    checks: createChecks(repository.pool, signal, (isSame, wanted, live) => {
      if (isSame) keep(run, wanted, live)
      else replace(run, wanted, live)
    }),
  }
  // Held until everything is in them: nothing may empty them before.
  using batches = new DisposableStack()
  try {
    await stageAll(run, target, signal)
    await stager.sync()
    signal.throwIfAborted()
    await journal.commit(await prepareTrash(target, run.displaced, batches))
  } catch (error) {
    journal.close()
    await stager.abandon()
    await run.checks.abandon()
    await removeTree(stagingRoot, name)
    throw isDiskFull(error) ? fail('disk_full', 'The disk is full; nothing was restored.', error) : error
  }
  journal.close()
  await completeInTheEnd(target, stagingRoot, name)
  result.displaced = run.displaced.length
  return result
}

async function stageAll(run: Run, target: RestoreTarget, signal: AbortSignal): Promise<void> {
  const { manifest, mode, paths } = run.request
  await planRestore({ manifest, sandbox: target.sandbox, mode, paths, signal }, (step) => {
    take(run, step)
    run.checks.settle()
    return run.checks.isFull() || run.stager.isFull() ? relieve(run, signal) : undefined
  })
  await run.checks.finish()
  await run.stager.finish()
  // Deepest first, since whatever is put into a directory changes its times.
  for (const { path, attributes, isAsWanted } of run.directories.reverse()) {
    if (isAsWanted && !run.touched.has(path)) continue
    run.journal.add('meta', { path: segmentsOf(path), ...attributes })
  }
}

async function relieve({ checks, stager }: Run, signal: AbortSignal): Promise<void> {
  if (checks.isFull()) await checks.step()
  if (stager.isFull()) await stager.flush()
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
  const kind = stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'symlink' : 'file'
  run.journal.add('displace', { path: segmentsOf(path), item: run.displaced.length })
  run.displaced.push({ path, kind })
}

function replace(run: Run, wanted: KeyedEntry, live: Checked): void {
  displace(run, live)
  create(run, wanted)
}

function create(run: Run, wanted: KeyedEntry): void {
  const path = segmentsOf(wanted.path)
  run.touched.add(parentOf(wanted.path))
  if (wanted.kind === 'directory') {
    run.journal.add('mkdir', { path })
    noteDirectory(run, wanted, false)
  } else if (wanted.hardLink !== null && isChosen(run, wanted.hardLink)) {
    run.journal.add('link', { path, to: segmentsOf(wanted.hardLink) })
    run.result.filesRestored++
  } else run.journal.add('place', { path, staged: run.stager.add(wanted) })
}

/** Not the entry itself, which holds on to its whole chunk of the manifest. */
function noteDirectory(run: Run, wanted: KeyedEntry, isAsWanted: boolean): void {
  run.directories.push({ path: wanted.path, attributes: attributesOf(wanted), isAsWanted })
}

/** A further link whose first is not part of this restore becomes a file of its own. */
function isChosen(run: Run, path: string): boolean {
  return run.roots.some((root) => isWithin(root, segmentsOf(path)))
}

function compare(run: Run, wanted: KeyedEntry, live: LiveEntry): void {
  if (wanted.kind === 'directory') {
    noteDirectory(run, wanted, hasAttributes(wanted, live.stats))
    return
  }
  if (wanted.kind === 'symlink') {
    if (targetOf(live) !== wanted.target) replace(run, wanted, live)
    else if (!hasAttributes(wanted, live.stats)) {
      run.journal.add('meta', { path: segmentsOf(wanted.path), ...attributesOf(wanted) })
    }
    return
  }
  const first = wanted.hardLink !== null && isChosen(run, wanted.hardLink) ? wanted.hardLink : null
  if (first !== null) {
    if (run.kept.get(first) === live.stats.ino) keep(run, wanted, live)
    else replace(run, wanted, live)
    return
  }
  // Two names of one file that were two files, or the other way round: made anew rather than told apart.
  const now = { sizeBytes: Number(live.stats.size), ...touchOf(live.stats) }
  if (run.request.isOrigin && isUnchanged(now, wanted)) keep(run, wanted, live)
  else if (now.sizeBytes === wanted.sizeBytes && live.stats.nlink === 1n) {
    const fd = openSync(addressOf(live.parent, live.name), OPEN_FILE)
    run.checks.add(wanted, { path: live.path, stats: live.stats }, fd)
  } else replace(run, wanted, live)
}

function keep(run: Run, wanted: KeyedEntry, { path, stats }: Checked): void {
  run.result.filesKept++
  if (stats.nlink > 1n) run.kept.set(path, stats.ino)
  if (!hasAttributes(wanted, stats)) run.journal.add('meta', { path: segmentsOf(path), ...attributesOf(wanted) })
}

function hasAttributes(wanted: KeyedEntry, stats: LiveEntry['stats']): boolean {
  const gap = stats.mtimeNs - wanted.mtimeNs
  return (
    (Number(stats.mode) & 0o7777) === wanted.mode &&
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

/**
 * Once the journal is committed there is no way back, and the server stays busy: what stops the swap and may pass, such
 * as a full disk, is waited out. If it does not pass, the next restore or the next start goes on from the journal.
 */
async function completeInTheEnd(target: RestoreTarget, stagingRoot: Directory, name: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await complete(target, stagingRoot, name)
    } catch (error) {
      if (attempt >= COMPLETE_RETRIES || !hasCode(error, ...PASSING)) throw error
      await delay(Math.min(100 * 2 ** attempt, 10_000))
    }
  }
}

/** From the journal to the end. What is left of staging is taken away last, and its journal with it. */
async function complete(target: RestoreTarget, stagingRoot: Directory, name: string): Promise<void> {
  using staging = openChild(stagingRoot, name)
  const commitment = readCommitment(staging)
  if (commitment) {
    mkdirSync(target.folders.trash, { recursive: true, mode: 0o700 })
    using trash = openRoot(target.folders.trash)
    const touched = await rollForward(staging, commitment, target.sandbox, (batch) => openChild(trash, batch))
    if (touched) await syncPaths(target.sandbox, touched)
    else await syncFileSystem(staging)
    await closeCommitment(staging)
  }
  await removeTree(stagingRoot, name)
}

/** Finishes what a crash interrupted: a committed restore is rolled forward, any other leaves the old tree. */
export async function recoverRestores(target: RestoreTarget): Promise<number> {
  mkdirSync(target.folders.staging, { recursive: true })
  using stagingRoot = openRoot(target.folders.staging)
  let count = 0
  for (const name of readdirSync(stagingRoot.address).filter((entry) => entry.startsWith(STAGED))) {
    await complete(target, stagingRoot, name)
    count++
  }
  return count
}
