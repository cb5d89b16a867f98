// What both directions need to carry out a journal: each step by itself, with the path at which it failed, moving aside
// whatever is in its way.

import { getSystemErrorMessage } from 'node:util'
import { isFailure } from '../../../contract/errors.ts'
import { hasCode, isOutOfDescriptors } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import type { Directory } from '../../files/sandbox/directory.ts'
import { formatPath } from '../../files/sandbox/paths.ts'
import { slotName } from '../../files/trash/trash-records.ts'
import type { RestoreHead } from '../../restore-state.ts'
import { isInTheWay, WAY_ATTEMPTS, type Way } from './restore-conflicts.ts'
import { BATCH_ITEMS } from './restore-journal.ts'
import type { RestoreTarget } from './restore-target.ts'

/** Everything that a run over a committed journal works on. */
export interface Swap {
  staging: Directory
  head: RestoreHead
  target: RestoreTarget
  openTrash(batch: string): Directory
  way: Way
}

/** Waited out: it may pass by itself. */
const PASSING = ['ENOSPC', 'EDQUOT', 'EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'EBUSY', 'EAGAIN']

/** One step of a journal could not be done. */
export class StepFailed extends Error {
  readonly path: string

  constructor(path: string[], cause: unknown) {
    super(`a step of a restore failed at ${JSON.stringify(formatPath(path))}`, { cause })
    this.name = 'StepFailed'
    this.path = formatPath(path)
  }

  get isPassing(): boolean {
    return hasCode(this.cause, ...PASSING)
  }
}

/** Whether a retry may help. Between the steps too: to read the journal and to sync takes descriptors. */
export const mayPass = (error: unknown): boolean =>
  error instanceof StepFailed ? error.isPassing : isOutOfDescriptors(error)

/** In words, without a path of the machine. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof StepFailed ? error.cause : error
  if (isFailure(cause)) return cause.detail.replace(/\.$/, '')
  if (cause instanceof Error && 'errno' in cause && typeof cause.errno === 'number' && 'code' in cause)
    return `${getSystemErrorMessage(cause.errno)} (${cause.code})`
  return cause instanceof Error && cause.message.includes('journal')
    ? cause.message
    : 'something went wrong on our side'
}

/**
 * Does `step` for every operation, in order. A step is synchronous, so that no other request of ours comes between its
 * look and its deed; `refresh` is called whenever something may have changed since the last one.
 */
export async function eachStep<O extends { path: string[] }>(
  pages: Iterable<O[]>,
  step: (operation: O) => void,
  { way, share, allowsDirectory, refresh }: { way: Way; share: string; allowsDirectory: boolean; refresh: () => void },
): Promise<void> {
  const turn = createTurns(share)
  for (const operations of pages) {
    for (const operation of operations) {
      try {
        step(operation)
      } catch (error) {
        refresh()
        await clearAndRetry(operation, step, { way, allowsDirectory }, error)
      }
      if (!turn.due()) continue
      refresh()
      await turn.take()
    }
  }
}

async function clearAndRetry<O extends { path: string[] }>(
  operation: O,
  step: (operation: O) => void,
  { way, allowsDirectory }: { way: Way; allowsDirectory: boolean },
  first: unknown,
): Promise<void> {
  let error = first
  for (let attempt = 0; attempt < WAY_ATTEMPTS && isInTheWay(error); attempt++) {
    try {
      await way.clear(operation.path, { allowsDirectory })
      return step(operation)
    } catch (next) {
      error = next
    }
  }
  throw new StepFailed(operation.path, error)
}

/** Where item `item` of what the plan displaces goes. */
export function slotOf(head: RestoreHead, item: number): { batch: string; slot: string } {
  return { batch: head.trashBatches[Math.floor(item / BATCH_ITEMS)] ?? '', slot: slotName(item % BATCH_ITEMS) }
}
