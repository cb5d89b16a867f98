// The update message of RFC 2136: what must hold first, then what to delete, then what to add.
import { randomInt } from 'node:crypto'
import type { Change } from './provider.ts'
import { keyOf, type RecordType } from './records.ts'
import { CLASS_IN, encodeData, encodeName, TYPE_CODE } from './wire.ts'

const OPCODE_UPDATE = 5
const CLASS_NONE = 254
const CLASS_ANY = 255
const TYPE_SOA = 6
/** Keeps a message of the largest TXT records below 64 KiB. */
export const MAX_UPDATE_CHANGES = 12

/** Types that a server would have to hold beside a CNAME; it says nothing and does nothing, so we ask first. */
const BESIDE_CNAME: readonly RecordType[] = ['A', 'AAAA', 'NS', 'SRV', 'TXT']

export function encodeUpdate(zone: string, changes: readonly Change[]): Buffer {
  const prerequisites = prerequisitesOf(changes)
  const deletes = changes.map((change) => record(change.name, change.type, CLASS_ANY, 0, NO_DATA))
  const adds = changes.flatMap(({ name, type, ttl, records }) =>
    records.map((data) => record(name, type, CLASS_IN, ttl, encodeData(type, data))),
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
  const replaced = new Set(changes.map(keyOf))
  const absent = new Map<string, Buffer>()
  const require = (name: string, type: RecordType) =>
    absent.set(keyOf({ name, type }), record(name, type, CLASS_NONE, 0, NO_DATA))
  for (const { name, type, records, onlyIfAbsent } of changes) {
    if (onlyIfAbsent) require(name, type)
    if (records.length === 0) continue
    const rivals = type === 'CNAME' ? BESIDE_CNAME : (['CNAME'] as const)
    for (const rival of rivals) if (!replaced.has(keyOf({ name, type: rival }))) require(name, rival)
  }
  return [...absent.values()]
}

const NO_DATA = Buffer.alloc(0)

function record(name: string, type: RecordType, klass: number, ttl: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(TYPE_CODE[type], 0)
  fixed.writeUInt16BE(klass, 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([encodeName(name), fixed, data])
}
