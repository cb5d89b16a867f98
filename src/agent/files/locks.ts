// Whoever changes a server's files holds the lock with others; whoever swaps the whole tree, or puts the server aside,
// holds it alone.
import { fail } from '../../contract/errors.ts'
import type { RestoreGate } from '../restore-state.ts'

/** Held by one change. */
export interface Share extends Disposable {
  /** Whether no other was held at any time since this one is. */
  isOnly(): boolean
}

export interface ServerLock {
  /** For one change. Refused with `server_busy` while the tree is being swapped, about to be, or stopped in the middle. */
  share(): Share
  /** For taking things out of the trash for good, which a restore allows. Refused once the server is put aside. */
  shareTrash(): Disposable
  /**
   * Waits for the changes under way, refusing new ones. A second one at a time is refused with `server_busy`, and so is one
   * while a restore has stopped in the middle, but for whoever finishes that.
   */
  exclude(signal?: AbortSignal, options?: { evenIfStopped: boolean }): Promise<Disposable>
  /**
   * For putting the server aside, in whatever state a restore has left it: waits for everything that the other three hold,
   * and refuses all of it until the answer is disposed of.
   */
  retire(): Promise<Disposable>
}

type Holder = 'restore' | 'retiring'

const REFUSALS: Record<Holder, string> = {
  restore: 'The files of this server are being replaced by a restore.',
  retiring: 'The server is being deleted.',
}

export function createServerLock(gate: Pick<RestoreGate, 'requireOpen'>): ServerLock {
  let shares = 0
  let sharesEver = 0
  let trashShares = 0
  let alone: Holder | undefined
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

  const isDrained = () => shares === 0 && (alone !== 'retiring' || trashShares === 0)
  const wake = () => {
    if (isDrained()) drained?.()
  }

  async function take(holder: Holder, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted()
    if (alone) throw fail('server_busy', REFUSALS[alone])
    alone = holder
    const release = once(() => {
      alone = undefined
    })
    if (isDrained()) return release
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
  }

  return {
    share() {
      gate.requireOpen()
      if (alone) throw fail('server_busy', REFUSALS[alone])
      const isFirst = shares++ === 0
      const index = ++sharesEver
      const held = once(() => {
        shares--
        wake()
      })
      return { ...held, isOnly: () => isFirst && index === sharesEver }
    },

    shareTrash() {
      if (alone === 'retiring') throw fail('server_busy', REFUSALS.retiring)
      trashShares++
      return once(() => {
        trashShares--
        wake()
      })
    },

    async exclude(signal, { evenIfStopped } = { evenIfStopped: false }) {
      if (!evenIfStopped) gate.requireOpen()
      return await take('restore', signal)
    },

    retire: () => take('retiring'),
  }
}
