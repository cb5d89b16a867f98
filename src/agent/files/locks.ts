// Whoever changes a server's files holds the lock with others; whoever swaps the whole tree holds it alone.
import { fail } from '../../contract/errors.ts'
import type { RestoreGate } from '../restore-state.ts'

export interface ServerLock {
  /** For one change. Refused with `server_busy` while the tree is being swapped, about to be, or stopped in the middle. */
  share(): Disposable
  /**
   * Waits for the changes under way, refusing new ones. A second one at a time is refused with `server_busy`, and so is one
   * while a restore has stopped in the middle, but for whoever finishes that or puts the server aside as it is.
   */
  exclude(signal?: AbortSignal, options?: { evenIfStopped: boolean }): Promise<Disposable>
}

export function createServerLock(gate: Pick<RestoreGate, 'requireOpen'>): ServerLock {
  let shares = 0
  let isExclusive = false
  let drained: (() => void) | undefined

  function once(release: () => void): Disposable {
    let held = true
    return {
      [Symbol.dispose]() {
        if (held) release()
        held = false
      },
    }
  }

  return {
    share() {
      gate.requireOpen()
      if (isExclusive) throw fail('server_busy', 'The files of this server are being replaced by a restore.')
      shares++
      return once(() => {
        if (--shares === 0) drained?.()
      })
    },

    async exclude(signal, { evenIfStopped } = { evenIfStopped: false }) {
      signal?.throwIfAborted()
      if (!evenIfStopped) gate.requireOpen()
      if (isExclusive) throw fail('server_busy', 'The files of this server are being replaced already.')
      isExclusive = true
      const release = once(() => {
        isExclusive = false
      })
      if (shares === 0) return release
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const onAbort = () => reject(signal?.reason)
      drained = resolve
      signal?.addEventListener('abort', onAbort, { once: true })
      try {
        await promise
        return release
      } catch (error) {
        release[Symbol.dispose]()
        throw error
      } finally {
        drained = undefined
        signal?.removeEventListener('abort', onAbort)
      }
    },
  }
}
