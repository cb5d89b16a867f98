// Dynamic updates (RFC 2136) signed with TSIG, over TCP, as BIND, Knot, PowerDNS and Windows take them. One call is
// one message, which the server does whole or not at all; the zone is listed by a transfer (AXFR).
import { randomInt } from 'node:crypto'
import * as dnsPacket from 'dns-packet'
import { exchangeTcp } from './exchange.ts'
import {
  type CallOptions,
  checkChanges,
  type DnsProvider,
  DnsProviderError,
  type Endpoint,
  withTimeout,
  type ZoneListing,
} from './provider.ts'
import { groupRecords, isRecordType, keyOf, normaliseName } from './records.ts'
import { createVerifier, sign, type TsigKey } from './tsig.ts'
import { ATOMIC_CHANGES, encodeUpdates } from './update.ts'
import { CLASS_IN, encodeName, fromAnswer, QTYPE_AXFR } from './wire.ts'

export interface Rfc2136Options {
  /** Where updates and transfers are taken. */
  server: Endpoint
  keyName: string
  /** Base64, as `tsig-keygen` prints it. The algorithm is hmac-sha256. */
  keySecret: string
  /** Where the zone is answered. Default: the server itself. */
  nameServers?: Endpoint[]
  timeoutMs?: number
  now?: () => number
}

const DEFAULT_TIMEOUT_MS = 10_000

export function createRfc2136(options: Rfc2136Options): DnsProvider {
  const key = readKey(options)
  const now = options.now ?? Date.now

  /** Yields verified answers without their signatures. */
  async function* converse(message: Buffer, { signal = new AbortController().signal }: CallOptions) {
    const signed = sign(message, key, Math.floor(now() / 1000))
    const verifier = createVerifier(key, signed.mac, now)
    try {
      for await (const answer of exchangeTcp(options.server, signed.message, signal)) {
        yield {
          packet: () => decode(verifier.check(answer)),
          rcode: answer.readUInt8(3) & 0x0f,
          finish: verifier.finish,
        }
      }
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof DnsProviderError) throw error
      const { host, port } = options.server
      throw new DnsProviderError('unreachable', `The name server ${host}:${port} cannot be reached.`, { cause: error })
    }
  }

  async function send(zone: string, update: Buffer, call: CallOptions): Promise<void> {
    for await (const { packet, rcode } of converse(update, call)) {
      packet()
      if (rcode !== 0) throw faultOf(zone, rcode)
      return
    }
  }

  async function list(zone: string, call: CallOptions): Promise<ZoneListing> {
    const records: dnsPacket.Answer[] = []
    for await (const { packet, rcode, finish } of converse(transferQuery(zone), call)) {
      const { answers = [] } = packet()
      if (rcode !== 0) throw faultOf(zone, rcode)
      records.push(...answers)
      // A transfer begins and ends with the SOA.
      if (records.length > 1 && records.at(-1)?.type === 'SOA') {
        finish()
        return readListing(records.slice(0, -1))
      }
    }
    throw new DnsProviderError('unreachable', 'The transfer of the zone broke off.')
  }

  return withTimeout<DnsProvider>(
    {
      kind: 'rfc2136',
      capabilities: { atomicChanges: ATOMIC_CHANGES, onlyIfAbsent: 'atomic', minTtl: 0 },
      list: async (zone, call = {}) => list(normaliseName(zone), call),
      async apply(zone, changes, call = {}) {
        const checked = checkChanges(normaliseName(zone), changes)
        if (checked.length === 0) return
        for (const update of encodeUpdates(normaliseName(zone), checked)) await send(normaliseName(zone), update, call)
      },
      authorities: async () => options.nameServers ?? [options.server],
      close: async () => {},
    },
    options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
  )
}

function readKey({ keyName, keySecret }: Rfc2136Options): TsigKey {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(keySecret)) throw new DnsProviderError('invalid', 'The TSIG secret is not base64.')
  return { name: normaliseName(keyName), secret: Buffer.from(keySecret, 'base64') }
}

function transferQuery(zone: string): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt16BE(randomInt(65_536), 0)
  header.writeUInt16BE(1, 4)
  return Buffer.concat([header, encodeName(zone), Buffer.of(0, QTYPE_AXFR, 0, CLASS_IN)])
}

function decode(message: Buffer): dnsPacket.DecodedPacket {
  try {
    return dnsPacket.decode(message)
  } catch (cause) {
    throw new DnsProviderError('server_error', 'The name server answered with a malformed message.', { cause })
  }
}

function readListing(records: dnsPacket.Answer[]): ZoneListing {
  const others = new Map<string, { name: string; type: string }>()
  for (const { name, type } of records) {
    const other = { name: normaliseName(name), type }
    if (!isRecordType(type)) others.set(keyOf(other), other)
  }
  return {
    recordSets: groupRecords(records.flatMap((record) => fromAnswer(record) ?? [])),
    others: [...others.values()],
  }
}

const SERVFAIL = 2
const NOTIMP = 4
const REFUSED = 5
const PREREQUISITES = [3, 6, 7, 8]
const NOTAUTH = 9

function faultOf(zone: string, rcode: number): DnsProviderError {
  if (PREREQUISITES.includes(rcode))
    return new DnsProviderError('conflict', `${zone} holds what stands against the change.`)
  if (rcode === NOTAUTH) return new DnsProviderError('zone_missing', `The name server does not have the zone ${zone}.`)
  if (rcode === REFUSED)
    return new DnsProviderError('refused', `The name server does not allow this key to read or update ${zone}.`)
  if (rcode === SERVFAIL || rcode === NOTIMP) {
    return new DnsProviderError('server_error', `The name server failed (rcode ${rcode}).`)
  }
  return new DnsProviderError('invalid', `The name server refused the change (rcode ${rcode}).`)
}
