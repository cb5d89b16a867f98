// Files with the right size but different times are read and compared with the backup, which is cheaper than writing
// them. The worker threads do this while planning continues.
import type { Descriptor } from '../../../kit/files/descriptor.ts'
import type { KeyedEntry } from '../format/entries.ts'
import type { Repository } from '../store/repository.ts'
import { hasSameContent } from '../workers/same-content.ts'
import type { LiveEntry } from './restore-plan.ts'

const CHECKS_AT_ONCE = 64

export type Checked = Pick<LiveEntry, 'path' | 'stats'>

interface Check {
  wanted: KeyedEntry
  live: Checked
  file: Descriptor
  /** Not before the answer is there. */
  isSame?: boolean
  answered: Promise<void>
}

export interface Checks {
  /** Takes the descriptor over. */
  add(wanted: KeyedEntry, live: Checked, file: Descriptor): void
  /** Tells of those that are done. */
  settle(): void
  isFull(): boolean
  /** Resolves when there is something to settle. */
  step(): Promise<void>
  finish(): Promise<void>
  /** Tells nobody. Once it resolves, no descriptor is in use any more. */
  abandon(): Promise<void>
}

export function createChecks(
  { pool, filesAtOnce }: Pick<Repository, 'pool' | 'filesAtOnce'>,
  signal: AbortSignal,
  tell: (isSame: boolean, wanted: KeyedEntry, live: Checked) => void,
): Checks {
  const checks: Check[] = []

  function settle(): void {
    for (let head = checks[0]; head?.isSame !== undefined; head = checks[0]) {
      checks.shift()
      head.file[Symbol.dispose]()
      tell(head.isSame, head.wanted, head.live)
    }
  }

  async function step(): Promise<void> {
    await checks[0]?.answered
    signal.throwIfAborted()
    settle()
  }

  return {
    add(wanted, live, file) {
      const answer = hasSameContent(pool, file.fd, wanted, signal)
      const check: Check = { wanted, live, file, answered: Promise.resolve() }
      check.answered = answer.then(
        (isSame) => {
          check.isSame = isSame
        },
        // One that cannot be read is made anew.
        () => {
          check.isSame = false
        },
      )
      checks.push(check)
    },
    settle,
    isFull: () => checks.length >= Math.min(CHECKS_AT_ONCE, filesAtOnce),
    step,
    async finish() {
      while (checks.length > 0) await step()
    },
    async abandon() {
      for (const { answered, file } of checks.splice(0)) {
        await answered
        file[Symbol.dispose]()
      }
    },
  }
}
