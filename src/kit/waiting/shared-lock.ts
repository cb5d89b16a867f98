// A readers-writer lock: many may share it, or one may hold it exclusively. Whoever waits to hold it exclusively comes
// before those who would share it later, so that a stream of them cannot keep it out for ever.

export interface SharedLock {
  share(signal?: AbortSignal): Promise<Disposable>
  /** Undefined where it would have to wait. */
  tryShare(): Disposable | undefined
  /** From this call on, before it resolves, nobody begins to share. */
  exclusive(signal?: AbortSignal): Promise<Disposable>
}

export function createSharedLock(): SharedLock {
  const waiting: { isExclusive: boolean; begin(): void }[] = []
  let sharers = 0
  let isHeld = false

  function advance(): void {
    for (let next = waiting[0]; next; next = waiting[0]) {
      if (isHeld || (next.isExclusive && sharers > 0)) return
      waiting.shift()
      if (next.isExclusive) isHeld = true
      else sharers++
      next.begin()
    }
  }

  async function take(isExclusive: boolean, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const giveUp = () => {
        waiting.splice(waiting.indexOf(request), 1)
        reject(signal?.reason)
        advance()
      }
      const begin = () => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      const request = { isExclusive, begin }
      waiting.push(request)
      signal?.addEventListener('abort', giveUp, { once: true })
      advance()
    })
    return held(isExclusive)
  }

  function held(isExclusive: boolean): Disposable {
    let isOpen = true
    return {
      [Symbol.dispose]() {
        if (!isOpen) return
        isOpen = false
        if (isExclusive) isHeld = false
        else sharers--
        advance()
      },
    }
  }

  return {
    share: (signal) => take(false, signal),
    tryShare() {
      if (isHeld || waiting.length > 0) return undefined
      sharers++
      return held(false)
    },
    exclusive: (signal) => take(true, signal),
  }
}
