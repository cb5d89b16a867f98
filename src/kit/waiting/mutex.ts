/** Runs one piece of work at a time, in the order in which they came. */
export type Mutex = <T>(work: () => Promise<T>) => Promise<T>

/** A mutex for each key: work on different keys does not wait. */
export type KeyedMutex = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function createMutex(): Mutex {
  const keyed = createKeyedMutex()
  return (work) => keyed('', work)
}

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const turn = (last.get(key) ?? Promise.resolve()).then(work, work)
    last.set(key, turn)
    try {
      return await turn
    } finally {
      if (last.get(key) === turn) last.delete(key)
    }
  }
}
