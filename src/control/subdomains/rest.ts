// A provider that does not answer is left alone for a moment, and then asked by one call only: otherwise every job of its
// zone would wait for the same timeout, and the jobs of other zones behind them.
import { type CallOptions, type DnsProvider, DnsProviderError, isDnsFault } from '../../dns/provider.ts'

const REST_MS = 2_000

export interface RestingProvider extends DnsProvider {
  /** The same without the rest, for somebody who wants to know now. What comes of it counts for the others too. */
  insist: DnsProvider
}

export function withRest(provider: DnsProvider, now: () => number = Date.now): RestingProvider {
  let restUntil = 0
  let probing = false

  const guarded = async <R>(options: CallOptions | undefined, call: () => Promise<R>): Promise<R> => {
    if (restUntil === 0) return settle(options, call)
    const leftMs = restUntil - now()
    if (probing || leftMs > 0) {
      const retryAfterMs = Math.max(leftMs, REST_MS / 4)
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
      restUntil = 0
      return answer
    } catch (error) {
      if (isDnsFault(error, 'unreachable')) restUntil = now() + REST_MS
      // Any other fault is an answer, and a caller who went away proves nothing.
      else if (!options?.signal?.aborted) restUntil = 0
      throw error
    }
  }

  const through = (pass: typeof guarded): DnsProvider => ({
    ...provider,
    list: (zone, options) => pass(options, () => provider.list(zone, options)),
    apply: (zone, changes, options) => pass(options, () => provider.apply(zone, changes, options)),
  })
  return { ...through(guarded), insist: through(settle) }
}
