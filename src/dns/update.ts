// The update message of RFC 2136: what must hold first, then what to delete, then what to add.
import { randomInt } from 'node:crypto'
import { type Change, DnsProviderError } from './provider.ts'
import { CLASS_IN, encodeData, encodeName, TYPE_CODE } from './wire.ts'

const OPCODE_UPDATE = 5
const CLASS_NONE = 254
const CLASS_ANY = 255
const TYPE_SOA = 6
/** A message must stay below 64 KiB with its signature. */
const MAX_MESSAGE_BYTES = 64_000
/** So many changes fit one message even if each is a TXT record of the largest size. */
export const ATOMIC_CHANGES = 12

/**
 * A server that cannot add a CNAME beside other data, or the other way round, ignores it without a word: so we demand
 * that there is none. A, NS, PTR, MX, TXT, AAAA, SRV, NAPTR, DNAME, SSHFP, TLSA, SVCB, HTTPS, CAA.
 */
const CODES_BESIDE_CNAME: readonly number[] = [1, 2, 12, 15, 16, 28, 33, 35, 39, 44, 52, 64, 65, 257]

/** One message where the changes fit, and as few as possible where they do not. */
export function encodeUpdates(zone: string, changes: readonly Change[]): Buffer[] {
  const message = encodeUpdate(zone, changes)
  if (message.length <= MAX_MESSAGE_BYTES) return [message]
  if (changes.length === 1) throw new DnsProviderError('invalid', 'The change cannot be made: the set is too large.')
  const half = Math.ceil(changes.length / 2)
  return [...encodeUpdates(zone, changes.slice(0, half)), ...encodeUpdates(zone, changes.slice(half))]
}

function encodeUpdate(zone: string, changes: readonly Change[]): Buffer {
  const prerequisites = prerequisitesOf(changes)
  const deletes = changes.map((change) => record(change.name, TYPE_CODE[change.type], CLASS_ANY, 0, NO_DATA))
  const adds = changes.flatMap(({ name, type, ttl, records }) =>
    records.map((data) => record(name, TYPE_CODE[type], CLASS_IN, ttl, encodeData(type, data))),
  )
  const header = Buffer.alloc(12)
  header.writeUInt16BE(randomInt(65_536), 0)
  header.writeUInt8(OPCODE_UPDATE << 3, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(prerequisites.length, 6)
  header.writeUInt16BE(deletes.length + adds.length, 8)
  const zoneSection = Buffer.concat([encodeName(zone), Buffer.of(0, TYPE_SOA, 0, CLASS_IN)])
  return Buffer.concat([header, zoneSection, ...prerequisites, ...deletes, ...adds])
}

/** "There is no such set": for `onlyIfAbsent`, and for what could not stand beside the change. */
function prerequisitesOf(changes: readonly Change[]): Buffer[] {
  const keyOfCode = (name: string, code: number) => `${name} ${code}`
  const replaced = new Set(changes.map(({ name, type }) => keyOfCode(name, TYPE_CODE[type])))
  const absent = new Map<string, Buffer>()
  const demand = (name: string, code: number) =>
    absent.set(keyOfCode(name, code), record(name, code, CLASS_NONE, 0, NO_DATA))
  for (const { name, type, records, onlyIfAbsent } of changes) {
    if (onlyIfAbsent) demand(name, TYPE_CODE[type])
    if (records.length === 0) continue
    const rivals = type === 'CNAME' ? CODES_BESIDE_CNAME : [TYPE_CODE.CNAME]
    for (const code of rivals) if (!replaced.has(keyOfCode(name, code))) demand(name, code)
  }
  return [...absent.values()]
}

const NO_DATA = Buffer.alloc(0)

function record(name: string, code: number, klass: number, ttl: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(code, 0)
  fixed.writeUInt16BE(klass, 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([encodeName(name), fixed, data])
}
