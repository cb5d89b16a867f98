// Wakes those who wait for the next line of a console.

export interface LineWaits {
  tell(serverId: string): void
  /** Watching begins with the call: whoever looks after it and then waits misses nothing. */
  watch(serverId: string): LineWait
}

export interface LineWait extends Disposable {
  /** Until there may be a new line, the time is over, or the signal fires. */
  wait(waitMs: number, signal?: AbortSignal): Promise<void>
}

export function createLineWaits(): LineWaits {
  const watchers = new Map<string, Set<() => void>>()
  return {
    tell(serverId) {
      for (const wake of watchers.get(serverId) ?? []) wake()
    },
    watch(serverId) {
      const woken = Promise.withResolvers<void>()
      const others = watchers.get(serverId) ?? new Set()
      watchers.set(serverId, others)
      others.add(woken.resolve)
      return {
        async wait(waitMs, signal) {
          if (signal?.aborted) return
          const timer = setTimeout(woken.resolve, waitMs).unref()
          const onAbort = () => woken.resolve()
          signal?.addEventListener('abort', onAbort, { once: true })
          await woken.promise
          clearTimeout(timer)
          signal?.removeEventListener('abort', onAbort)
        },
        [Symbol.dispose]() {
          others.delete(woken.resolve)
          if (others.size === 0) watchers.delete(serverId)
        },
      }
    },
  }
}
