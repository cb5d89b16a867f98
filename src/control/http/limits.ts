// Requests are counted in windows of a minute. Memory is bounded by forgetting every window that has passed.
const WINDOW_MS = 60_000
const SWEEP_AT = 10_000

export interface Count {
  allowed: boolean
  limit: number
  remaining: number
  resetSeconds: number
}

export interface RateLimiter {
  /** Counts one for this key. */
  take(key: string): Count
  /** Looks without counting. */
  peek(key: string): Count
}

export function createRateLimiter(limit: number, clock: { now(): number }): RateLimiter {
  const windows = new Map<string, { used: number; endsAt: number }>()

  function windowOf(key: string, now: number) {
    const current = windows.get(key)
    if (current && current.endsAt > now) return current
    if (windows.size >= SWEEP_AT) for (const [other, w] of windows) if (w.endsAt <= now) windows.delete(other)
    const fresh = { used: 0, endsAt: now + WINDOW_MS }
    windows.set(key, fresh)
    return fresh
  }

  function count(key: string, by: number): Count {
    const now = clock.now()
    const window = windowOf(key, now)
    const allowed = limit === 0 || window.used < limit
    if (allowed) window.used += by
    const resetSeconds = Math.max(1, Math.ceil((window.endsAt - now) / 1000))
    return { allowed, limit, remaining: Math.max(0, limit - window.used), resetSeconds }
  }

  return { take: (key) => count(key, 1), peek: (key) => count(key, 0) }
}

export function rateLimitHeaders(policy: string, { limit, remaining, resetSeconds }: Count): Record<string, string> {
  return {
    'ratelimit-policy': `"${policy}";q=${limit};w=${WINDOW_MS / 1000}`,
    ratelimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
  }
}
