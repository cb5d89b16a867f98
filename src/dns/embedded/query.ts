// Reads a query by hand: this runs for every packet of anyone on the internet, so it allocates one string, never
// throws, and never reads past the end.

export interface Query {
  /** Lower-case bytes of the name as it is on the wire, one character a byte; the form in which names are looked up. */
  key: string
  /** Where the question ends; it starts at 12. */
  questionEnd: number
  type: number
  class: number
  /** Null without EDNS. */
  edns: { payloadBytes: number; version: number; dnssecOk: boolean } | null
}

export const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
const TYPE_OPT = 41

const NO_EDNS = null
const MALFORMED = null

/** Null for a query that is malformed. The caller has checked that there is a header and that it is a query. */
export function readQuery(packet: Buffer): Query | null {
  if (((packet[4] as number) << 8) + (packet[5] as number) !== 1) return MALFORMED
  const nameEnd = skipPlainName(packet, HEADER_BYTES)
  if (nameEnd < 0 || nameEnd + 4 > packet.length) return MALFORMED
  const questionEnd = nameEnd + 4
  const type = packet.readUInt16BE(nameEnd)
  const klass = packet.readUInt16BE(nameEnd + 2)
  const key = keyOfName(packet, HEADER_BYTES, nameEnd)
  const query: Query = { key, questionEnd, type, class: klass, edns: NO_EDNS }
  return readRecords(packet, query) ? query : MALFORMED
}

/** Where the name ends, or -1. A question has nothing before it to point at, so pointers are malformed here. */
function skipPlainName(packet: Buffer, start: number): number {
  let at = start
  while (at < packet.length) {
    const length = packet[at] as number
    if (length === 0) return at + 1 - start <= MAX_NAME_BYTES ? at + 1 : -1
    if (length > 63) return -1
    at += length + 1
  }
  return -1
}

/** Label lengths are at most 63, below every letter, so folding the whole slice folds the letters only. */
function keyOfName(packet: Buffer, start: number, end: number): string {
  const key = packet.toString('latin1', start, end)
  for (let at = start; at < end; at++) {
    const byte = packet[at] as number
    if (byte >= 0x41 && byte <= 0x5a) return foldCase(key)
  }
  return key
}

/** ASCII letters only, as DNS compares names; `toLowerCase` would fold bytes beyond ASCII too. */
function foldCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** Walks what follows the question, for OPT and to see that it is well formed to the last byte. */
function readRecords(packet: Buffer, query: Query): boolean {
  const additionals = packet.readUInt16BE(10)
  const others = packet.readUInt16BE(6) + packet.readUInt16BE(8)
  let at = query.questionEnd
  for (let record = 0; record < others + additionals; record++) {
    const fixed = skipName(packet, at)
    if (fixed < 0 || fixed + 10 > packet.length) return false
    const end = fixed + 10 + packet.readUInt16BE(fixed + 8)
    if (end > packet.length) return false
    if (packet.readUInt16BE(fixed) === TYPE_OPT) {
      if (record < others || packet[at] !== 0 || query.edns || !hasWholeOptions(packet, fixed + 10, end)) return false
      query.edns = {
        payloadBytes: packet.readUInt16BE(fixed + 2),
        version: packet[fixed + 5] as number,
        dnssecOk: ((packet[fixed + 6] as number) & 0x80) !== 0,
      }
    }
    at = end
  }
  return at === packet.length
}

function skipName(packet: Buffer, start: number): number {
  let at = start
  while (at < packet.length) {
    const length = packet[at] as number
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    if (length > 63) return -1
    at += length + 1
  }
  return -1
}

function hasWholeOptions(packet: Buffer, start: number, end: number): boolean {
  let at = start
  while (at + 4 <= end) at += 4 + packet.readUInt16BE(at + 2)
  return at === end
}
