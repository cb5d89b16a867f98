// From a packet to its answer: what an authoritative server says, without sockets.
import { CLASS_IN, QTYPE_AXFR, QTYPE_IXFR } from '../wire.ts'
import { HEADER_BYTES, type Query, readQuery } from './query.ts'
import { type Answer, NOERROR, parentOf, type ServedZone } from './zone.ts'

const FORMERR = 1
const NOTIMP = 4
const REFUSED = 5
const BADVERS = 16

const FLAG_RESPONSE = 0x80
const FLAG_AUTHORITATIVE = 0x04
const FLAG_TRUNCATED = 0x02
const FLAG_RECURSION_DESIRED = 0x01
const OPCODE_MASK = 0x78

const OPT_BYTES = 11
const PLAIN_UDP_BYTES = 512
/** Fits every path without fragments, which are lost or forged all too easily. */
export const MAX_UDP_BYTES = 1232
const MAX_TCP_BYTES = 65_535

export interface Responder {
  /** Null where nothing must be sent: no header, or itself a response. Must never throw, whatever the bytes. */
  respond(packet: Buffer, transport: 'udp' | 'tcp'): Buffer | null
  /** The answer that makes an honest client ask again over TCP, and is no larger than its question. */
  slip(packet: Buffer): Buffer | null
}

/** `zones` is read anew for every packet, keyed by the wire form of the zone's name. */
export function createResponder(zones: ReadonlyMap<string, ServedZone>): Responder {
  return {
    respond(packet, transport) {
      if (!isQuery(packet)) return null
      if (((packet[2] as number) & OPCODE_MASK) !== 0) return bare(packet, NOTIMP)
      const query = readQuery(packet)
      if (!query) return bare(packet, FORMERR)
      if (query.edns && query.edns.version > 0) return build(packet, query, refusal(BADVERS), MAX_UDP_BYTES, 0)
      const zone = query.class === CLASS_IN ? zoneOf(zones, query.key) : undefined
      if (!zone || query.type === QTYPE_AXFR || query.type === QTYPE_IXFR) {
        return build(packet, query, refusal(REFUSED), MAX_UDP_BYTES, 0)
      }
      const answer = zone.find(query.key, query.type) ?? zone.missing(query.key)
      return build(packet, query, answer, transport === 'tcp' ? MAX_TCP_BYTES : udpLimit(query), FLAG_AUTHORITATIVE)
    },
    slip(packet) {
      const query = isQuery(packet) ? readQuery(packet) : null
      return query && build(packet, query, refusal(NOERROR), MAX_UDP_BYTES, FLAG_TRUNCATED)
    },
  }
}

function isQuery(packet: Buffer): boolean {
  return packet.length >= HEADER_BYTES && ((packet[2] as number) & FLAG_RESPONSE) === 0
}

function zoneOf(zones: ReadonlyMap<string, ServedZone>, name: string): ServedZone | undefined {
  for (let key = name; key.length > 1; key = parentOf(key)) {
    const zone = zones.get(key)
    if (zone) return zone
  }
  return undefined
}

function udpLimit(query: Query): number {
  if (!query.edns) return PLAIN_UDP_BYTES
  return Math.min(Math.max(query.edns.payloadBytes, PLAIN_UDP_BYTES), MAX_UDP_BYTES)
}

const EMPTY = Buffer.alloc(0)

function refusal(rcode: number): Answer {
  return { rcode, answers: 0, authorities: 0, additionals: 0, bytes: EMPTY, coreBytes: 0 }
}

/** For what cannot be read: the header alone, since the question may be the part that is broken. */
function bare(packet: Buffer, rcode: number): Buffer {
  const response = Buffer.alloc(HEADER_BYTES)
  response[0] = packet[0] as number
  response[1] = packet[1] as number
  response[2] = FLAG_RESPONSE | ((packet[2] as number) & (OPCODE_MASK | FLAG_RECURSION_DESIRED))
  response[3] = rcode
  return response
}

/** Header, the question as it came, the answer as far as it fits, and OPT if the client sent one. */
function build(packet: Buffer, query: Query, answer: Answer, maxBytes: number, flags: number): Buffer {
  const { questionEnd, edns } = query
  const room = maxBytes - questionEnd - (edns ? OPT_BYTES : 0)
  const whole = answer.bytes.length <= room
  const bodyBytes = whole ? answer.bytes.length : answer.coreBytes <= room ? answer.coreBytes : 0
  const truncated = !whole && answer.coreBytes > room
  const response = Buffer.allocUnsafe(questionEnd + bodyBytes + (edns ? OPT_BYTES : 0))
  packet.copy(response, 0, 0, questionEnd)
  response[2] =
    FLAG_RESPONSE | flags | (truncated ? FLAG_TRUNCATED : 0) | ((packet[2] as number) & FLAG_RECURSION_DESIRED)
  response[3] = answer.rcode & 0x0f
  response.writeUInt16BE(truncated ? 0 : answer.answers, 6)
  response.writeUInt16BE(truncated ? 0 : answer.authorities, 8)
  response.writeUInt16BE((whole ? answer.additionals : 0) + (edns ? 1 : 0), 10)
  if (bodyBytes > 0) answer.bytes.copy(response, questionEnd, 0, bodyBytes)
  if (edns) writeOpt(response, questionEnd + bodyBytes, answer.rcode, edns.dnssecOk)
  return response
}

function writeOpt(response: Buffer, at: number, rcode: number, dnssecOk: boolean): void {
  response.fill(0, at, at + OPT_BYTES)
  response[at + 2] = 41
  response.writeUInt16BE(MAX_UDP_BYTES, at + 3)
  response[at + 5] = rcode >> 4
  response[at + 7] = dnssecOk ? 0x80 : 0
}
