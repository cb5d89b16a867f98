// A queue before an API that counts requests: better to wait here for a moment than to be locked out for minutes.
import { setTimeout as delay } from 'node:timers/promises'
import { DnsProviderError } from './provider.ts'

export interface GateOptions {
  /** So many at once when nothing was sent for a while. */
  burst: number
  perSecond: number
  /** Who would wait longer is told at once to come back, rather than holding up the caller. */
  maxWaitMs: number
  now?: () => number
}

export interface Gate {
  /** Returns when a request may be sent, in the order of asking, or fails with `rate_limited`. */
  pass(signal?: AbortSignal): Promise<void>
  /** The API has said that it takes nothing for so long. */
  shut(ms: number): void
}

/** In any span of t seconds at most `burst + t * perSecond` requests pass. */
export function createGate({ burst, perSecond, maxWaitMs, now = Date.now }: GateOptions): Gate {
  const spacingMs = 1000 / perSecond
  /** When the allowance of a full burst would be there again; each request moves it by one spacing. */
  let fullAt = 0
  let shutUntil = 0
  /** Resolves when all who wait have passed or given up. */
  let others: Promise<unknown> = Promise.resolve()
  return {
    async pass(signal) {
      const moment = now()
      const allowedAt = Math.max(fullAt - (burst - 1) * spacingMs, shutUntil)
      const waitMs = Math.max(0, allowedAt - moment)
      if (waitMs > maxWaitMs) {
        throw new DnsProviderError('rate_limited', 'Too many requests to the DNS provider.', {
          retryAfterMs: Math.ceil(waitMs),
        })
      }
      fullAt = Math.max(fullAt, moment) + spacingMs
      const before = others
      // By the clock alone, one whose timer is late would be overtaken, also by one who need not wait at all.
      const waited = waitMs === 0 ? Promise.resolve() : delay(waitMs, undefined, signal ? { signal } : {})
      const passed = waited.then(() => before)
      others = Promise.allSettled([before, passed])
      await passed
    },
    shut(ms) {
      shutUntil = Math.max(shutUntil, now() + ms)
    },
  }
}
