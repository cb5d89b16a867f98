// Many may share, or one may hold alone. Who waits to hold alone comes before who would share later, so that a stream of
// backups cannot keep a reclaim out for ever.

export interface SharedLock {
  share(signal?: AbortSignal): Promise<Disposable>
  alone(signal?: AbortSignal): Promise<Disposable>
}

export function createSharedLock(): SharedLock {
  const waiting: { isAlone: boolean; begin(): void }[] = []
  let sharers = 0
  let isHeld = false

  function advance(): void {
    for (let next = waiting[0]; next; next = waiting[0]) {
      if (isHeld || (next.isAlone && sharers > 0)) return
      waiting.shift()
      if (next.isAlone) isHeld = true
      else sharers++
      next.begin()
    }
  }

  async function take(isAlone: boolean, signal?: AbortSignal): Promise<Disposable> {
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
      const request = { isAlone, begin }
      waiting.push(request)
      signal?.addEventListener('abort', giveUp, { once: true })
      advance()
    })
    let isOpen = true
    return {
      [Symbol.dispose]() {
        if (!isOpen) return
        isOpen = false
        if (isAlone) isHeld = false
        else sharers--
        advance()
      },
    }
  }

  return { share: (signal) => take(false, signal), alone: (signal) => take(true, signal) }
}
