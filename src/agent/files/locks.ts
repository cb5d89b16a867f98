// A read-write lock per server: changes to its files hold it shared; swapping the whole tree, or setting the server
// aside, holds it exclusively.
import { fail } from '../../contract/errors.ts'
import { createSharedLock } from '../../kit/waiting/shared-lock.ts'
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
  const changes = createSharedLock()
  const trash = createSharedLock()
  let sharers = 0
  let sharesEver = 0
  /** Who holds it exclusively, or waits to. */
  let holder: Holder | undefined

  const busy = (by: Holder) => fail('server_busy', REFUSALS[by])

  async function take(by: Holder, begin: () => Promise<Disposable>): Promise<Disposable> {
    if (holder) throw busy(holder)
    holder = by
    const release = new DisposableStack()
    release.defer(() => {
      holder = undefined
    })
    try {
      release.use(await begin())
      return release
    } catch (error) {
      release.dispose()
      throw error
    }
  }

  async function excludeAll(): Promise<Disposable> {
    const release = new DisposableStack()
    for (const held of await Promise.all([changes.exclusive(), trash.exclusive()])) release.use(held)
    return release
  }

  return {
    share() {
      gate.requireOpen()
      const held = changes.tryShare()
      if (!held) throw busy(holder ?? 'restore')
      const isFirst = sharers++ === 0
      const index = ++sharesEver
      const release = new DisposableStack()
      release.use(held)
      release.defer(() => sharers--)
      return { [Symbol.dispose]: () => release.dispose(), isOnly: () => isFirst && index === sharesEver }
    },

    shareTrash() {
      const held = trash.tryShare()
      if (!held) throw busy('retiring')
      return held
    },

    async exclude(signal, { evenIfStopped } = { evenIfStopped: false }) {
      if (!evenIfStopped) gate.requireOpen()
      signal?.throwIfAborted()
      return await take('restore', () => changes.exclusive(signal))
    },

    retire: () => take('retiring', excludeAll),
  }
}
