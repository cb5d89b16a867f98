// Completes a committed journal in one direction or the other. Transient errors are retried; any other stops the
// restore in the middle, and the server stays busy until somebody has chosen a direction.
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { RestoreOutcome, StoppedRestore } from '../../../contract/agent/agent-backups.ts'
import { type Failure, fail } from '../../../contract/errors.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { type Directory, openChild, openRoot, statsIfThere, unlinkAt } from '../../files/sandbox/directory.ts'
import { removeTree } from '../../files/sandbox/remove-tree.ts'
import {
  describeStop,
  FIRST_FORMAT,
  newerItems,
  REASON_FILE,
  RESTORE_FOLDER,
  type RestoreHead,
  type RestorePhase,
  WHAT_TO_DO,
} from '../../restore-state.ts'
import { rollBack } from './restore-back.ts'
import { createWay } from './restore-conflicts.ts'
import { rollForward } from './restore-forward.ts'
import { freeForQuota } from './restore-freeing.ts'
import { changePhase, readCommitment, readHead, readPhase, type Section } from './restore-journal.ts'
import { mayPass, reasonOf, StepFailed, type Swap } from './restore-steps.ts'
import { syncFileSystem, syncPaths } from './restore-sync.ts'
import type { RestoreTarget } from './restore-target.ts'

type Direction = 'forward' | 'back'
interface Choice {
  jobId: string
  direction: Direction
}
/** `backupId`: as it is known without a look at the disk. */
interface Ending extends Choice {
  backupId: string
}
const ENDS = { forward: 'done', back: 'undone' } as const satisfies Record<Direction, RestorePhase>
/** Together about a minute. */
const RETRIES = 12

/** Open from before it is committed: from then on nothing may fail without being the end of the restore, or its stop. */
export interface RestoreFolder {
  stagingRoot: Directory
  staging: Directory
}

/** `retries`: how often to wait for what may pass. Fails with `restore_unfinished`, and then the server's gate is closed. */
export async function finishSwap(
  target: RestoreTarget,
  { stagingRoot, staging }: RestoreFolder,
  ending: Ending,
  { retries = RETRIES } = {},
): Promise<RestoreOutcome> {
  const { jobId, direction } = ending
  let head: RestoreHead
  try {
    await enter(staging, direction)
    head = await patiently(retries, () => carryOut(target, staging, direction))
  } catch (error) {
    throw await stop(target, staging, ending, error)
  }
  target.gate.open()
  await patiently(retries, () => afterSwap(target, stagingRoot, jobId)).catch(target.onUnexpected)
  return { phase: ENDS[direction], report: head.report }
}

async function patiently<T>(retries: number, work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt >= retries || !mayPass(error)) throw error
      await delay(Math.min(100 * 2 ** attempt, 10_000))
    }
  }
}

async function enter(staging: Directory, direction: Direction): Promise<void> {
  const phase = readPhase(staging)
  if (phase !== undefined && phase !== direction) await changePhase(staging, phase, direction)
}

/** What is still in staging says that this has not been done yet: then the next start does it. */
async function afterSwap(target: RestoreTarget, stagingRoot: Directory, jobId: string): Promise<void> {
  using staging = openChild(stagingRoot, folderOf(jobId))
  const head = statsIfThere(staging, 'displace' satisfies Section) && headIfSound(staging, 'done')
  if (head)
    await freeForQuota(target, head).catch((error) => {
      if (mayPass(error)) throw error
      target.onUnexpected(error)
    })
  await sweepStaged(target, stagingRoot, jobId)
}

/** Answers what was committed. */
async function carryOut(target: RestoreTarget, staging: Directory, direction: Direction): Promise<RestoreHead> {
  const head = readCommitment(staging, direction)
  if (head.version === 1 && direction === 'back')
    throw fail('restore_unfinished', 'It was begun by an earlier version, and can only go forward.')
  mkdirSync(target.folders.trash, { recursive: true, mode: 0o700 })
  using trash = openRoot(target.folders.trash)
  const openTrash = (batch: string) => openChild(trash, batch)
  target.gate.hold([...head.trashBatches, ...newerItems(staging.address).map(({ batch }) => batch)])
  const way = createWay(target, staging, openTrash, direction)
  const swap: Swap = { staging, head, target, openTrash, way }
  const touched = direction === 'forward' ? await rollForward(swap) : await rollBack(swap)
  if (touched) await syncPaths(target.sandbox, touched)
  else await syncFileSystem(staging)
  await changePhase(staging, direction, ENDS[direction])
  return head
}

/**
 * The phase first: it is what keeps the next start from going on by itself. It can be the end already, where the disk has
 * failed after the rename: what is not known to be durable has not ended. Where the journal is sound, the gate holds its
 * trash already.
 */
async function stop(
  target: RestoreTarget,
  staging: Directory,
  { jobId, direction, backupId }: Ending,
  error: unknown,
): Promise<Error> {
  const path = error instanceof StepFailed ? error.path : null
  const why = { since: target.now(), path, reason: reasonOf(error) }
  const phase = phaseIfReadable(staging) ?? direction
  if (isDamaged(staging, phase)) target.gate.holdAll()
  target.gate.close({ jobId, backupId, ...why })
  try {
    if (statsIfThere(staging, phase)) await changePhase(staging, phase, 'stopped')
    const file = join(staging.address, REASON_FILE)
    writeFileSync(`${file}.new`, JSON.stringify(why), { flush: true, mode: 0o600 })
    renameSync(`${file}.new`, file)
  } catch (failure) {
    target.onUnexpected(failure)
  }
  return unfinished(why, error)
}

export function unfinished(why: Pick<StoppedRestore, 'path' | 'reason'>, cause?: unknown): Failure {
  return fail('restore_unfinished', `${describeStop(why)} ${WHAT_TO_DO}`, cause)
}

function phaseIfReadable(staging: Directory): RestorePhase | undefined {
  try {
    return readPhase(staging)
  } catch {
    return undefined
  }
}

/** Undefined where it is damaged. Fails where there is no descriptor to look with: that says nothing of it. */
function headIfSound(staging: Directory, phase: RestorePhase): RestoreHead | undefined {
  try {
    return readHead(staging, phase)
  } catch (error) {
    if (mayPass(error)) throw error
    return undefined
  }
}

function isDamaged(staging: Directory, phase: RestorePhase): boolean {
  try {
    return headIfSound(staging, phase) === undefined
  } catch {
    return false
  }
}

/** What the agent knows of the restore of a job: null where it was never committed, or control has recorded its end. */
export function readOutcome(target: RestoreTarget, jobId: string): RestoreOutcome | null {
  using stagingRoot = openRoot(target.folders.staging)
  if (!statsIfThere(stagingRoot, folderOf(jobId))) return null
  using staging = openChild(stagingRoot, folderOf(jobId))
  const phase = readPhase(staging)
  return phase === undefined ? null : outcomeOf(staging, phase)
}

function outcomeOf(staging: Directory, phase: RestorePhase): RestoreOutcome {
  return { phase, report: headIfSound(staging, phase)?.report ?? null }
}

/** Chooses how a restore that has stopped ends. Repeating it for one that has ended answers how. */
export async function finishRestore(
  target: RestoreTarget,
  choice: Choice,
  options?: { retries: number },
): Promise<RestoreOutcome> {
  const before = readOutcome(target, choice.jobId)
  if (!before) throw fail('not_found', 'There is no restore to finish.')
  if (before.phase === 'done' || before.phase === 'undone') return before
  using stagingRoot = openRoot(target.folders.staging)
  using staging = openChild(stagingRoot, folderOf(choice.jobId))
  const backupId = target.gate.stopped()?.backupId ?? ''
  return await finishSwap(target, { stagingRoot, staging }, { ...choice, backupId }, options)
}

/** What control has recorded needs no report any more. Of one that has not ended nothing is taken away. */
export async function forgetRestore(target: RestoreTarget, jobId: string): Promise<void> {
  if (!hasEnded(target, jobId)) return
  using stagingRoot = openRoot(target.folders.staging)
  await removeTree(stagingRoot, folderOf(jobId), { share: target.sandbox.share })
}

function hasEnded(target: RestoreTarget, jobId: string): boolean {
  const phase = readOutcome(target, jobId)?.phase
  return phase === 'done' || phase === 'undone'
}

const jobsIn = (target: RestoreTarget) =>
  readdirSync(target.folders.staging)
    .filter((name) => name.startsWith(RESTORE_FOLDER))
    .map((name) => name.slice(RESTORE_FOLDER.length))

export const endedRestores = (target: RestoreTarget) => jobsIn(target).filter((jobId) => hasEnded(target, jobId))

/**
 * At the start: one that a crash interrupted goes on in its direction, one that was never committed leaves the old tree,
 * and one that has stopped is left as it is.
 */
export async function recoverRestores(target: RestoreTarget): Promise<void> {
  mkdirSync(target.folders.staging, { recursive: true })
  for (const jobId of jobsIn(target)) {
    const name = folderOf(jobId)
    using stagingRoot = openRoot(target.folders.staging)
    const isFirstFormat = await adoptFirstFormat(stagingRoot, name)
    const phase = readOutcome(target, jobId)?.phase
    if (phase === undefined) await removeTree(stagingRoot, name, { share: target.sandbox.share })
    // What is on its way out of the trash already is not to be freed twice.
    else await target.recoverTrash()
    if (phase === 'done' || phase === 'undone') await afterSwap(target, stagingRoot, jobId)
    // A start does not wait for what may pass: it stops, and can be finished when somebody says so.
    else if (phase !== undefined && phase !== 'stopped')
      await finishRestore(target, { jobId, direction: phase }, { retries: 0 }).catch(target.onUnexpected)
    // Control does not know it by this name.
    if (isFirstFormat) await forgetRestore(target, jobId)
  }
}

/** An upgrade in the middle of a restore: what an earlier version has committed is carried out. */
async function adoptFirstFormat(stagingRoot: Directory, name: string): Promise<boolean> {
  using staging = openChild(stagingRoot, name)
  if (!statsIfThere(staging, FIRST_FORMAT)) return false
  await changePhase(staging, FIRST_FORMAT, 'forward')
  return true
}

/** Removes what earlier restores of the server have left: control begins no other before it has recorded their end. */
export async function sweepEnded(target: RestoreTarget): Promise<void> {
  for (const jobId of jobsIn(target)) await forgetRestore(target, jobId)
}

/** All but the phase, which holds the report. */
async function sweepStaged({ sandbox }: RestoreTarget, stagingRoot: Directory, jobId: string): Promise<void> {
  using staging = openChild(stagingRoot, folderOf(jobId))
  const phase = readPhase(staging)
  const turn = createTurns(sandbox.share)
  for (const entry of readdirSync(staging.address, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeTree(staging, entry.name, { share: sandbox.share })
    else if (entry.name !== phase) unlinkAt(staging, entry.name)
    if (turn.due()) await turn.take()
  }
}

/** Ids of jobs come from control; what is not a plain name is not made one. */
export function folderOf(jobId: string): string {
  if (!/^[\w-]{1,100}$/.test(jobId)) throw fail('not_found', 'There is no such restore.')
  return `${RESTORE_FOLDER}${jobId}`
}
