import { setTimeout as delay } from 'node:timers/promises'

/** Lets through this many bytes a second on average, with up to a second's worth at once. */
export function createRateLimit(bytesPerSecond: number | null) {
  let freeAt = 0
  return {
    async take(bytes: number, signal: AbortSignal): Promise<void> {
      if (bytesPerSecond === null) return
      const now = performance.now()
      freeAt = Math.max(freeAt, now - 1000) + (bytes / bytesPerSecond) * 1000
      if (freeAt > now) await delay(freeAt - now, undefined, { signal })
    },
  }
}
