// A circuit breaker: a provider that does not answer is not called for a while, and then by a single call. Otherwise
// every job of its zone would wait for the same timeout, and the jobs of other zones behind them.
import { type CallOptions, type DnsProvider, DnsProviderError, isDnsFault } from '../../dns/provider.ts'

const OPEN_MS = 2_000

export interface GuardedProvider extends DnsProvider {
  /** Calls the provider in any case, for somebody who wants to know now. The result counts for the others too. */
  unguarded: DnsProvider
}

export function withCircuitBreaker(provider: DnsProvider, now: () => number = Date.now): GuardedProvider {
  let openUntil = 0
  let probing = false

  const guarded = async <R>(options: CallOptions | undefined, call: () => Promise<R>): Promise<R> => {
    if (openUntil === 0) return settle(options, call)
    const leftMs = openUntil - now()
    if (probing || leftMs > 0) {
      const retryAfterMs = Math.max(leftMs, OPEN_MS / 4)
      throw new DnsProviderError('unreachable', 'The DNS provider did not answer a moment ago.', { retryAfterMs })
    }
    probing = true
    try {
      return await settle(options, call)
    } finally {
      probing = false
    }
  }

  async function settle<R>(options: CallOptions | undefined, call: () => Promise<R>): Promise<R> {
    try {
      const answer = await call()
      openUntil = 0
      return answer
    } catch (error) {
      if (isDnsFault(error, 'unreachable')) openUntil = now() + OPEN_MS
      // Any other fault is an answer, and a caller who went away proves nothing.
      else if (!options?.signal?.aborted) openUntil = 0
      throw error
    }
  }

  const through = (pass: typeof guarded): DnsProvider => ({
    ...provider,
    list: (zone, options) => pass(options, () => provider.list(zone, options)),
    apply: (zone, changes, options) => pass(options, () => provider.apply(zone, changes, options)),
  })
  return { ...through(guarded), unguarded: through(settle) }
}
