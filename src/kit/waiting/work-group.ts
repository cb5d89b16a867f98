// Pieces of work that run side by side, a bounded number at a time. The group fails as the first of them that fails.

export interface WorkGroup {
  /** How many run now. */
  readonly size: number
  isFull(): boolean
  hasFailed(): boolean
  /** Takes over work that has begun. Whoever starts another awaits `room` first, or afterwards. */
  start(work: Promise<unknown>): void
  /** Resolves when one of those that run has ended; never where none does. */
  next(): Promise<void>
  /** Resolves when another may be started. */
  room(): Promise<void>
  /** Throws what has failed, if anything has, without waiting. */
  check(): void
  /** Resolves when all have ended, however they did. */
  ended(): Promise<void>
  /** Resolves when all have ended, or fails as the first that failed, which is then forgotten. */
  drain(): Promise<void>
}

export function createWorkGroup(limit: number): WorkGroup {
  const running = new Set<Promise<void>>()
  let failure: { error: unknown } | undefined
  let awaited: PromiseWithResolvers<void> | undefined

  function end(work: Promise<void>): void {
    running.delete(work)
    awaited?.resolve()
    awaited = undefined
  }

  function check(): void {
    if (failure) throw failure.error
  }

  function next(): Promise<void> {
    awaited ??= Promise.withResolvers()
    return awaited.promise
  }

  async function ended(): Promise<void> {
    while (running.size > 0) await Promise.all(running)
  }

  return {
    get size() {
      return running.size
    },
    isFull: () => running.size >= limit,
    hasFailed: () => failure !== undefined,
    start(work) {
      const done: Promise<void> = work.then(
        () => end(done),
        (error) => {
          failure ??= { error }
          end(done)
        },
      )
      running.add(done)
    },
    next,
    async room() {
      while (running.size >= limit) await next()
    },
    check,
    ended,
    async drain() {
      await ended()
      try {
        check()
      } finally {
        failure = undefined
      }
    },
  }
}

/** Does the same with every item, so many at a time. Once it resolves or rejects, none is under way. */
export async function forEachAtOnce<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const group = createWorkGroup(limit)
  for (const item of items) {
    if (group.hasFailed()) break
    group.start(work(item))
    await group.room()
  }
  await group.drain()
}
