// How long to wait before the next attempt, and the waiting itself.

const FIRST_MS = 200
const LONGEST_MS = 10_000
/** The service counts requests in windows of a minute, so it never asks for more than this. */
export const LONGEST_RETRY_AFTER_MS = 60_000

/** Doubles with each attempt from 1 on; random between half and all of it, so that clients do not come back as one. */
export function backOffMs(attempt: number, firstMs = FIRST_MS, random: () => number = Math.random): number {
  const full = Math.min(LONGEST_MS, firstMs * 2 ** (attempt - 1))
  return full / 2 + (random() * full) / 2
}

/** `Retry-After` in milliseconds: seconds, or a date. Null when it is absent or makes no sense. */
export function readRetryAfter(value: string | null, now: number): number | null {
  if (value === null || value.trim() === '') return null
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

/** Rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
