// Record sets as plain data, the same whatever provider holds them. Names are absolute, in lower case and without the
// trailing dot; TXT is one text, however many strings of 255 bytes it takes on the wire.
import { isIPv4, isIPv6 } from 'node:net'

export interface RecordData {
  A: { address: string }
  AAAA: { address: string }
  CNAME: { target: string }
  NS: { target: string }
  SRV: { priority: number; weight: number; port: number; target: string }
  TXT: { text: string }
  SOA: {
    primary: string
    contact: string
    serial: number
    refresh: number
    retry: number
    expire: number
    negativeTtl: number
  }
}

export type RecordType = keyof RecordData
/** What `apply` takes. NS and SOA are the zone owner's: a change to them could take the whole zone off the air. */
export type ChangeableType = 'A' | 'AAAA' | 'CNAME' | 'SRV' | 'TXT'

export interface RecordSetOf<T extends RecordType> {
  name: string
  type: T
  /** Seconds. */
  ttl: number
  records: RecordData[T][]
}

export type RecordSet = { [T in RecordType]: RecordSetOf<T> }[RecordType]
export type ChangeableRecordSet = { [T in ChangeableType]: RecordSetOf<T> }[ChangeableType]

export const RECORD_TYPES: readonly RecordType[] = ['A', 'AAAA', 'CNAME', 'NS', 'SRV', 'TXT', 'SOA']

const MAX_TTL = 2 ** 31 - 1
const MAX_TEXT_BYTES = 4096
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

export function isRecordType(type: string): type is RecordType {
  return (RECORD_TYPES as readonly string[]).includes(type)
}

/** Lower case, without the trailing dot. The one spelling in which names are compared. */
export function normaliseName(name: string): string {
  const lower = name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

function isInZone(name: string, zone: string): boolean {
  return name === zone || name.endsWith(`.${zone}`)
}

/** Letters, digits, hyphens and underscores: what game records need, and nothing that a provider spells its own way. */
export function isName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => LABEL.test(label))
}

export function normaliseRecordSet<S extends RecordSet>(set: S): S {
  const records = set.records.map((record) => normaliseData(set.type, record))
  const unique = new Map(records.map((record) => [JSON.stringify(record), record]))
  const sorted = [...unique].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record)
  return { name: normaliseName(set.name), type: set.type, ttl: set.ttl, records: sorted } as S
}

/** Whether two sets say the same: case, order, repetition and the spelling of an address do not matter. */
export function sameRecordSet(a: RecordSet, b: RecordSet): boolean {
  return JSON.stringify(normaliseRecordSet(a)) === JSON.stringify(normaliseRecordSet(b))
}

function normaliseData(type: RecordType, record: RecordData[RecordType]): RecordData[RecordType] {
  switch (type) {
    case 'A':
      return { address: (record as RecordData['A']).address }
    case 'AAAA':
      return { address: normaliseIPv6((record as RecordData['AAAA']).address) }
    case 'CNAME':
    case 'NS':
      return { target: normaliseName((record as RecordData['NS']).target) }
    case 'SRV': {
      const { priority, weight, port, target } = record as RecordData['SRV']
      return { priority, weight, port, target: normaliseName(target) }
    }
    case 'TXT':
      return { text: (record as RecordData['TXT']).text }
    case 'SOA': {
      const { primary, contact, serial, refresh, retry, expire, negativeTtl } = record as RecordData['SOA']
      const names = { primary: normaliseName(primary), contact: normaliseName(contact) }
      return { ...names, serial, refresh, retry, expire, negativeTtl }
    }
  }
}

function normaliseIPv6(address: string): string {
  const parsed = URL.parse(`http://[${address}]`)
  return parsed ? parsed.hostname.slice(1, -1) : address
}

/** What is wrong with a set that is to be put into the zone, or null. The set is in its normal form. */
export function faultOf(zone: string, set: ChangeableRecordSet): string | null {
  if (!isName(set.name)) return `${JSON.stringify(set.name)} is not a name that can be managed`
  if (!isInZone(set.name, zone)) return `${set.name} is not in the zone ${zone}`
  if (!Number.isInteger(set.ttl) || set.ttl < 0 || set.ttl > MAX_TTL) return `the TTL of ${set.name} is out of range`
  if (set.type === 'CNAME' && set.records.length > 1) return `${set.name} can have one CNAME only`
  if (set.type === 'CNAME' && set.name === zone) return 'the top of a zone cannot have a CNAME'
  const bad = set.records.some((record) => !isData(set.type, record))
  return bad ? `a ${set.type} record of ${set.name} is not valid` : null
}

function isData(type: ChangeableType, record: RecordData[ChangeableType]): boolean {
  switch (type) {
    case 'A':
      return isIPv4((record as RecordData['A']).address)
    case 'AAAA': {
      const { address } = record as RecordData['AAAA']
      return isIPv6(address) && !address.includes('%')
    }
    case 'CNAME':
      return isName((record as RecordData['CNAME']).target)
    case 'SRV': {
      const { priority, weight, port, target } = record as RecordData['SRV']
      return isName(target) && [priority, weight, port].every((n) => Number.isInteger(n) && n >= 0 && n <= 65_535)
    }
    case 'TXT': {
      const { text } = record as RecordData['TXT']
      return text.isWellFormed() && Buffer.byteLength(text) <= MAX_TEXT_BYTES
    }
  }
}

/** Groups single records, as providers list them, into sets. The first TTL met counts for the set. */
export function groupRecords(
  records: Iterable<{ name: string; type: RecordType; ttl: number; data: RecordData[RecordType] }>,
): RecordSet[] {
  const sets = new Map<string, RecordSet>()
  for (const { name, type, ttl, data } of records) {
    const key = keyOf({ name: normaliseName(name), type })
    const set = sets.get(key)
    if (set) (set.records as RecordData[RecordType][]).push(data)
    else sets.set(key, { name, type, ttl, records: [data] } as RecordSet)
  }
  return [...sets.values()].map(normaliseRecordSet)
}

export function keyOf(set: { name: string; type: string }): string {
  return `${set.name} ${set.type}`
}
