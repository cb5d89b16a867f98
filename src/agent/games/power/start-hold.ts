// Keeps a game from being started, for work that it must not see: one installation at a time.
import { fail } from '../../../contract/errors.ts'

export interface StartHold {
  /** Until it is disposed of. Fails with `server_busy` where somebody has it. */
  take(): Disposable
  /** Fails with `server_busy` while somebody has it. */
  requireFree(): void
  isTaken(): boolean
  /** How often it was taken. */
  count(): number
}

export function createStartHold(): StartHold {
  let isTaken = false
  let count = 0
  function requireFree(): void {
    if (isTaken) throw fail('server_busy', 'The server is being installed.')
  }
  return {
    take() {
      requireFree()
      isTaken = true
      count++
      return {
        [Symbol.dispose]() {
          isTaken = false
        },
      }
    },
    requireFree,
    isTaken: () => isTaken,
    count: () => count,
  }
}
