// Waits for something that no event tells of, by asking again; fails when it takes far longer than it ever should.
import { setTimeout as delay } from 'node:timers/promises'

const GIVE_UP_MS = 60_000

export async function until<T>(ask: () => Promise<T | undefined | false | null>): Promise<T> {
  const deadline = Date.now() + GIVE_UP_MS
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    if (Date.now() > deadline) throw new Error(`still not so after ${GIVE_UP_MS} ms`)
    await delay(20)
  }
}
