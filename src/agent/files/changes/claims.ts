// Two concurrent changes to one thing must not both conclude, after a crash, that they made the change: each has
// exclusive use of what it changes from before its intent until its fact is written.
export interface Claims {
  /**
   * Runs `work` when nobody holds any of the keys. They are asked for again after every wait, and nothing is awaited
   * between the last time and the beginning of `work`.
   */
  alone<T>(keys: () => readonly string[], work: () => Promise<T>): Promise<T>
}

export function createClaims(): Claims {
  const held = new Map<string, Promise<unknown>>()
  return {
    async alone(keys, work) {
      for (;;) {
        const wanted = keys()
        const holder = wanted.map((key) => held.get(key)).find((found) => found !== undefined)
        if (!holder) {
          const working = work()
          const settled = working.catch(() => {})
          for (const key of wanted) held.set(key, settled)
          try {
            return await working
          } finally {
            for (const key of wanted) held.delete(key)
          }
        }
        await holder
      }
    },
  }
}
