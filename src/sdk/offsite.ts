import { claimOffsite, pruneOffsite, readOffsite } from '../contract/backups/offsite.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export function createOffsiteApi(transport: Transport) {
  return {
    /** Where it is, what is still to be sent, and what somebody has to do something about. */
    read: transport.method(readOffsite, (options: CallOptions = {}) => options),
    /** Confirms that this much may be removed, as `surplus.bytes` says. */
    prune: transport.method(pruneOffsite, (bytes: number, options: CallOptions = {}) => ({
      body: { bytes },
      ...options,
    })),
    /** Takes it over from the service that has it. */
    claim: transport.method(claimOffsite, (options: CallOptions = {}) => options),
  }
}
