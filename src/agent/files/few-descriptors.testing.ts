// Runs an operation where descriptors have run out: with none left, with one, with two, and so on until it succeeds. So each
// call that opens something fails once, right after whatever was opened before it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs, { closeSync, openSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { hasCode } from '../../kit/files/errno.ts'
import { openDescriptors, untilDescriptors } from './trees.testing.ts'

/** More than the runtime, its threads and the preload of the suite hold, and soon filled. */
const SOFT_LIMIT = 256
/** The most that the preload of the suite keeps busy of those that were closed last. */
const KEPT_BUSY = 32

/** `at once`: this many are free, again and again. `in all`: of those that are closed, others take each at once. */
const SHORTAGES = { 'at once': 40, 'in all': 100 } as const
export type Shortage = keyof typeof SHORTAGES

/** The reason to skip these tests. */
export const cannotRunOut: string | false = lowerLimit()

/** What an operation may change, by whatever names. */
export type Seen = Record<string, unknown>

export interface Operation {
  /** Everything is as it was before, whatever became of it meanwhile. */
  reset(): unknown
  work(): Promise<unknown>
  look(): Seen | Promise<Seen>
  /** Whether a part of it may be done where it fails. By default all of it is, or nothing. */
  mayBePart?: boolean
  /** All of them by default. */
  shortages?: readonly Shortage[]
  /** For what waits until there are descriptors again: there are, as soon as it does. */
  passesOnceAwaited?: boolean
}

/** At each shortage it fails or succeeds, leaves nothing open and loses nothing, and succeeds once there are descriptors again. */
export async function atEveryShortage(operation: Operation): Promise<void> {
  await operation.reset()
  const before = await operation.look()
  // What is loaded on first use is there from now on.
  await operation.work()
  const after = await operation.look()
  for (const shortage of operation.shortages ?? (Object.keys(SHORTAGES) as Shortage[])) {
    let free = 0
    while (!(await succeeds(operation, { shortage, free, before, after })))
      assert.ok(++free < SHORTAGES[shortage], `fails with ${free} ${shortage}`)
  }
}

interface Attempt {
  shortage: Shortage
  free: number
  before: Seen
  after: Seen
}

async function succeeds(operation: Operation, { shortage, free, before, after }: Attempt): Promise<boolean> {
  const when = `with ${free} ${shortage}`
  await operation.reset()
  const open = openDescriptors()
  const { error, hasPassed } = await whileFew(shortage, free, operation.work, operation)
  await untilDescriptors(open).catch((cause) => assert.fail(`${when} this stays open:\n${cause.message}`))
  const seen = await operation.look()
  if (error === undefined) {
    assert.deepEqual(seen, after, when)
    return !hasPassed
  }
  assert.ok(isOfShortage(error), error as Error)
  if (isDeepStrictEqual(seen, after)) return false
  if (!operation.mayBePart || !isPart(seen, before, after)) assert.deepEqual(seen, before, when)
  await operation.work()
  assert.deepEqual(await operation.look(), after, `again, after it failed ${when}`)
  return false
}

/** Each thing is as it was or as it should be. */
function isPart(seen: Seen, before: Seen, after: Seen): boolean {
  const names = new Set([seen, before, after].flatMap(Object.keys))
  return names.values().every((name) => seen[name] === before[name] || seen[name] === after[name])
}

/** Answers why it has failed, and whether there were descriptors again before it ended. */
export async function whileFew(
  shortage: Shortage,
  free: number,
  work: () => unknown,
  { passesOnceAwaited = false }: Pick<Operation, 'passesOnceAwaited'> = {},
) {
  const fillers = fill()
  for (const filler of fillers.splice(0, free)) closeSync(filler)
  let hasPassed = false
  const pass = () => {
    hasPassed = true
    fs.closeSync = ownCloseSync
    timers.setTimeout = ownDelay
    syncBuiltinESMExports()
    for (const filler of fillers.splice(0)) closeSync(filler)
  }
  if (shortage === 'in all') takeWhatIsClosed(fillers)
  if (passesOnceAwaited) callOnceAwaited(pass)
  let error: unknown
  try {
    await work()
  } catch (thrown) {
    error = thrown ?? new Error('it failed without a reason')
  }
  const ended = { error, hasPassed }
  pass()
  return ended
}

const ownDelay = timers.setTimeout

/** However long the work takes: only what waits on purpose calls this. */
function callOnceAwaited(call: () => void): void {
  timers.setTimeout = (_ms, value, options) => {
    call()
    return ownDelay(1, value, options)
  }
  syncBuiltinESMExports()
}

const ownCloseSync = fs.closeSync

function takeWhatIsClosed(fillers: number[]): void {
  fs.closeSync = (fd) => {
    ownCloseSync(fd)
    fillers.push(...fill(1))
  }
  syncBuiltinESMExports()
}

function fill(most = Number.POSITIVE_INFINITY): number[] {
  const fillers: number[] = []
  try {
    while (fillers.length < most) fillers.push(openSync('/dev/null', 'r'))
  } catch (error) {
    if (!hasCode(error, 'EMFILE')) throw error
  }
  return fillers
}

function isOfShortage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof SuppressedError) return isOfShortage(error.error) && isOfShortage(error.suppressed)
  return hasCode(error, 'EMFILE') || isOfShortage(error.cause)
}

function lowerLimit(): string | false {
  const { error, status } = spawnSync('prlimit', ['--pid', `${process.pid}`, `--nofile=${SOFT_LIMIT}:`])
  if (error || status !== 0) return 'there is no prlimit that lowers the limit of open files'
  // From now on the preload gives one back for each that it keeps.
  for (const number of fill(KEPT_BUSY + 1)) closeSync(number)
  return false
}
