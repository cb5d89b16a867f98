// Wakes those who wait for something to change, by its id, at once.

export interface Watchers {
  /** What has this id is changed, and others can read it already. */
  tell(id: string): void
  /** Watching begins with the call: whoever reads after it and then waits misses nothing. */
  watch(id: string): Watch
}

export interface Watch extends Disposable {
  /** Watches this id as well. */
  add(id: string): void
  /** Whether something has changed since the last wait; false when the time is over or the signal fires before that. */
  wait(waitMs: number, signal?: AbortSignal): Promise<boolean>
}

export function createWatchers(): Watchers {
  const watchers = new Map<string, Set<() => void>>()

  const tell = (id: string) => {
    for (const wake of watchers.get(id) ?? []) wake()
  }

  function subscribe(id: string, wake: () => void): void {
    const others = watchers.get(id)
    if (others) others.add(wake)
    else watchers.set(id, new Set([wake]))
  }

  function unsubscribe(id: string, wake: () => void): void {
    const others = watchers.get(id)
    others?.delete(wake)
    if (others?.size === 0) watchers.delete(id)
  }

  return {
    tell,
    watch(first) {
      const ids = new Set<string>()
      let hasChanged = false
      let waiting: (() => void) | undefined
      const wake = () => {
        hasChanged = true
        waiting?.()
      }
      const add = (id: string) => {
        ids.add(id)
        subscribe(id, wake)
      }
      add(first)
      return {
        add,
        async wait(waitMs, signal) {
          if (!hasChanged && !signal?.aborted) {
            await new Promise<void>((resolve) => {
              const timer = setTimeout(done, waitMs).unref()
              function done(): void {
                clearTimeout(timer)
                signal?.removeEventListener('abort', done)
                waiting = undefined
                resolve()
              }
              waiting = done
              signal?.addEventListener('abort', done, { once: true })
            })
          }
          const answer = hasChanged
          hasChanged = false
          return answer
        },
        [Symbol.dispose]() {
          for (const id of ids) unsubscribe(id, wake)
        },
      }
    },
  }
}
