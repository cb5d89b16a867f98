// A caller that missed the answer asks again with the same id: it gets the first answer.
const REMEMBER_MS = 10 * 60_000

export interface Repeats {
  once<T>(key: string, work: () => Promise<T>): Promise<T>
}

export function createRepeats(now: () => number): Repeats {
  const known = new Map<string, { at: number; answer: Promise<unknown> }>()

  function forgetOld(): void {
    for (const [key, { at }] of known) {
      if (now() - at < REMEMBER_MS) return
      known.delete(key)
    }
  }

  return {
    once<T>(key: string, work: () => Promise<T>): Promise<T> {
      forgetOld()
      const earlier = known.get(key)
      if (earlier) return earlier.answer as Promise<T>
      const answer = work()
      known.set(key, { at: now(), answer })
      // A failure is not an answer to keep: the next try may go better.
      answer.catch(() => known.delete(key))
      return answer
    },
  }
}
