// Requests are counted in windows of a minute. Memory is bounded by forgetting every window that has passed.
const WINDOW_MS = 60_000
const SWEEP_AT = 10_000
const SWEEP_EVERY_MS = 1000

export interface Count {
  allowed: boolean
  limit: number
  remaining: number
  resetSeconds: number
}

export interface RateLimiter {
  /** Counts one for this key. */
  take(key: string): Count
}

/** By a clock that nobody sets: one that is put forward would forget what was used, one that is put back would lock out. */
export function createRateLimiter(limit: number): RateLimiter {
  const windows = new Map<string, { used: number; endsAt: number }>()
  let sweepAfter = 0

  function windowOf(key: string, now: number) {
    const current = windows.get(key)
    if (current && current.endsAt > now) return current
    if (windows.size >= SWEEP_AT && now >= sweepAfter) {
      for (const [other, w] of windows) if (w.endsAt <= now) windows.delete(other)
      sweepAfter = now + SWEEP_EVERY_MS
    }
    const fresh = { used: 0, endsAt: now + WINDOW_MS }
    windows.set(key, fresh)
    return fresh
  }

  return {
    take(key) {
      if (limit === 0) return UNLIMITED
      const now = performance.now()
      const window = windowOf(key, now)
      const allowed = window.used < limit
      if (allowed) window.used++
      const resetSeconds = Math.max(1, Math.ceil((window.endsAt - now) / 1000))
      return { allowed, limit, remaining: limit - window.used, resetSeconds }
    },
  }
}

const UNLIMITED: Count = { allowed: true, limit: 0, remaining: 0, resetSeconds: 1 }

export function rateLimitHeaders(policy: string, count: Count): Record<string, string> {
  return { 'ratelimit-policy': policyHeader(policy, count.limit), ratelimit: standingHeader(policy, count) }
}

export const policyHeader = (policy: string, limit: number) => `"${policy}";q=${limit};w=${WINDOW_MS / 1000}`

export const standingHeader = (policy: string, { remaining, resetSeconds }: Count) =>
  `"${policy}";r=${remaining};t=${resetSeconds}`
