/**
 * `sync`, such that what was written before a call is on disk once the call resolves. Callers at the same time share one:
 * who comes while one is under way waits for the next, as his bytes may have come too late for it.
 */
export function createSharedSync(sync: () => Promise<void>): {
  sync(): Promise<void>
  whenEnded(then: () => void): void
} {
  let current: Promise<void> | undefined
  let following: Promise<void> | undefined

  function begin(): Promise<void> {
    current = sync().finally(() => {
      current = undefined
    })
    return current
  }

  return {
    sync() {
      if (!current) return begin()
      following ??= current
        .catch(() => {})
        .then(() => {
          following = undefined
          return begin()
        })
      return following
    },
    /** At once where none is under way or asked for. */
    whenEnded(then) {
      if (current || following) void Promise.allSettled([current, following]).then(then)
      else then()
    },
  }
}
