// The port through which the service changes DNS, and what every provider behind it owes.
import {
  type ChangeableRecordSet,
  type ChangeableType,
  faultOf,
  keyOf,
  normaliseRecordSet,
  type RecordSet,
  type RecordSetOf,
} from './records.ts'

/** One whole record set to be there when `apply` returns. No records: the set is to be absent. */
export type Change = { [T in ChangeableType]: RecordSetOf<T> & ChangeCondition }[ChangeableType]

interface ChangeCondition {
  /** The whole `apply` fails with `conflict` if a set of this name and type is there already, even an equal one. */
  onlyIfAbsent?: boolean
}

export interface Capabilities {
  /** Up to this many changes of one `apply` take effect together or not at all; more are sent in several steps. */
  atomicChanges: number
  /** `atomic`: the server itself checks `onlyIfAbsent`. `checked`: the adapter looks first, so a race can be lost. */
  onlyIfAbsent: 'atomic' | 'checked'
  /** A smaller TTL is refused with `invalid`. */
  minTtl: number
}

export interface CallOptions {
  /** When it fires, the call rejects at once with the signal's reason. What was sent may still take effect. */
  signal?: AbortSignal
}

export interface Endpoint {
  host: string
  port: number
}

export interface ZoneListing {
  recordSets: RecordSet[]
  /** Sets of types that we have no shape for (MX, CAA, …): named, so that nobody takes their names for free. */
  others: { name: string; type: string }[]
}

export interface DnsProvider {
  readonly kind: 'embedded' | 'powerdns' | 'rfc2136' | 'cloudflare'
  readonly capabilities: Capabilities

  /** Everything in the zone, also what we did not make, in the normal form of `normaliseRecordSet`. */
  list(zone: string, options?: CallOptions): Promise<ZoneListing>

  /**
   * Returns only when the provider has confirmed that every change holds. Must be idempotent: repeated after an
   * unknown outcome it ends in the same zone (but for `onlyIfAbsent`: list first). Must not touch a set that is not
   * named. Deleting what is absent is success. A set that cannot stand beside what is there (a CNAME beside other
   * data) fails with `conflict` and changes nothing.
   */
  apply(zone: string, changes: readonly Change[], options?: CallOptions): Promise<void>

  /** The name servers to ask, over DNS, whether a change is answered. */
  authorities(zone: string, options?: CallOptions): Promise<Endpoint[]>

  /** Lets go of sockets and files; calls under way may fail. May be called twice. */
  close(): Promise<void>
}

export type DnsFaultKind =
  /** No answer, or not in time. What was sent may have taken effect. */
  | 'unreachable'
  /** The credentials are wrong, revoked or too weak, or the answer was not signed as it should be. */
  | 'refused'
  /** Nothing was done; try again after `retryAfterMs`. */
  | 'rate_limited'
  | 'zone_missing'
  /** What is in the zone stands against the change. */
  | 'conflict'
  /** The change itself can never be made. */
  | 'invalid'
  | 'server_error'

/** Never holds a credential, in its message or its cause. */
export class DnsProviderError extends Error {
  readonly kind: DnsFaultKind
  readonly retryAfterMs: number | undefined

  constructor(kind: DnsFaultKind, message: string, context: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, context.cause === undefined ? undefined : { cause: context.cause })
    this.name = 'DnsProviderError'
    this.kind = kind
    this.retryAfterMs = context.retryAfterMs
  }

  /** Whether the same call may succeed later with nobody having changed anything by hand. */
  get retryable(): boolean {
    return this.kind === 'unreachable' || this.kind === 'rate_limited' || this.kind === 'server_error'
  }
}

export function isDnsFault(error: unknown, kind?: DnsFaultKind): error is DnsProviderError {
  return error instanceof DnsProviderError && (kind === undefined || error.kind === kind)
}

/** Bounds every call, so that no adapter needs a clock of its own. A call out of time fails with `unreachable`. */
export function withTimeout<P extends DnsProvider>(provider: P, timeoutMs: number): P {
  const bounded = async <R>(options: CallOptions | undefined, work: (options: CallOptions) => Promise<R>) => {
    options?.signal?.throwIfAborted()
    const deadline = AbortSignal.timeout(timeoutMs)
    const signal = options?.signal ? AbortSignal.any([options.signal, deadline]) : deadline
    try {
      return await work({ signal })
    } catch (error) {
      if (options?.signal?.aborted) throw options.signal.reason
      if (!deadline.aborted) throw error
      throw new DnsProviderError('unreachable', `The DNS provider did not answer within ${timeoutMs} ms.`)
    }
  }
  return {
    ...provider,
    list: (zone, options) => bounded(options, (inTime) => provider.list(zone, inTime)),
    apply: (zone, changes, options) => bounded(options, (inTime) => provider.apply(zone, changes, inTime)),
    authorities: (zone, options) => bounded(options, (inTime) => provider.authorities(zone, inTime)),
  }
}

/** The normal form of the changes, or `invalid` naming the first that can never be made. */
export function checkChanges(zone: string, changes: readonly Change[], minTtl = 0): Change[] {
  const seen = new Set<string>()
  return changes.map((change) => {
    const set = normaliseRecordSet<ChangeableRecordSet>(change)
    const fault = faultOf(zone, set) ?? (seen.has(keyOf(set)) ? `${set.name} ${set.type} is named twice` : null)
    if (fault) throw new DnsProviderError('invalid', `The change cannot be made: ${fault}.`)
    if (set.records.length > 0 && set.ttl < minTtl) {
      throw new DnsProviderError('invalid', `The change cannot be made: the TTL must be at least ${minTtl} s.`)
    }
    seen.add(keyOf(set))
    return { ...set, ...(change.onlyIfAbsent ? { onlyIfAbsent: true } : {}) } as Change
  })
}

/** Throws `conflict` if the changes, in their normal form, cannot be made to a zone that holds these sets. */
export function checkConflicts(existing: ZoneListing, changes: readonly Change[]): void {
  const typesAt = new Map<string, Set<string>>()
  const types = (name: string) => {
    const known = typesAt.get(name) ?? new Set<string>()
    typesAt.set(name, known)
    return known
  }
  for (const { name, type } of [...existing.recordSets, ...existing.others]) types(name).add(type)
  for (const { name, type, onlyIfAbsent } of changes) {
    if (onlyIfAbsent && types(name).has(type)) {
      throw new DnsProviderError('conflict', `${name} has a ${type} record already.`)
    }
  }
  for (const { name, type, records } of changes) {
    if (records.length > 0) types(name).add(type)
    else types(name).delete(type)
  }
  for (const { name } of changes) {
    if (types(name).has('CNAME') && types(name).size > 1) {
      throw new DnsProviderError('conflict', `${name} cannot have a CNAME beside other records.`)
    }
  }
}
