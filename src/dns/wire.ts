// Record data to and from its form on the wire. dns-packet knows the types; the shapes of `records.ts` are ours.
import * as dnsPacket from 'dns-packet'
import { isRecordType, normaliseName, type RecordData, type RecordType } from './records.ts'

export const TYPE_CODE = { A: 1, NS: 2, CNAME: 5, SOA: 6, TXT: 16, AAAA: 28, SRV: 33 } as const satisfies Record<
  RecordType,
  number
>
export const QTYPE_ANY = 255
export const QTYPE_AXFR = 252
export const QTYPE_IXFR = 251
export const CLASS_IN = 1

const MAX_STRING_BYTES = 255

interface Codec {
  encode(data: unknown): Buffer
  decode(message: Buffer, offset: number): unknown
}

// Exported by the library and absent from its types.
const internals = dnsPacket as unknown as {
  record(type: string): Codec
  name: { encode(name: string): Buffer }
}

/** `message` is whole, since names in record data may point elsewhere in it; `offset` is that of the length field. */
export function decodeData(type: RecordType, message: Buffer, offset: number): RecordData[RecordType] {
  return fromPacket(type, codecOf(type).decode(message, offset))
}

/** Without the length field, and with no name compressed. */
export function encodeData(type: RecordType, data: RecordData[RecordType]): Buffer {
  return codecOf(type).encode(toPacket(type, data)).subarray(2)
}

export function encodeName(name: string): Buffer {
  return internals.name.encode(name === '' ? '.' : name)
}

export function splitText(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const strings: Buffer[] = []
  for (let at = 0; at < bytes.length; at += MAX_STRING_BYTES) strings.push(bytes.subarray(at, at + MAX_STRING_BYTES))
  return strings.length > 0 ? strings : [Buffer.alloc(0)]
}

/** One record of a decoded message in our shape; null for a type that has none. */
export function fromAnswer(answer: dnsPacket.Answer): {
  name: string
  type: RecordType
  ttl: number
  data: RecordData[RecordType]
} | null {
  if (answer.type === 'OPT' || !isRecordType(answer.type)) return null
  const { name, ttl = 0, data } = answer as dnsPacket.BaseAnswer<RecordType, unknown>
  return { name: normaliseName(name), type: answer.type, ttl, data: fromPacket(answer.type, data) }
}

function codecOf(type: RecordType): Codec {
  return internals.record(type)
}

function fromPacket(type: RecordType, data: unknown): RecordData[RecordType] {
  switch (type) {
    case 'A':
    case 'AAAA':
      return { address: data as string }
    case 'CNAME':
    case 'NS':
      return { target: data as string }
    case 'SRV': {
      const { priority = 0, weight = 0, port, target } = data as dnsPacket.SrvData
      return { priority, weight, port, target }
    }
    case 'TXT':
      return { text: Buffer.concat(data as Buffer[]).toString() }
    case 'SOA': {
      const { mname, rname, ...soa } = data as Required<dnsPacket.SoaData>
      const { serial, refresh, retry, expire, minimum } = soa
      return { primary: mname, contact: rname, serial, refresh, retry, expire, negativeTtl: minimum }
    }
  }
}

function toPacket(type: RecordType, data: RecordData[RecordType]): unknown {
  switch (type) {
    case 'A':
    case 'AAAA':
      return (data as RecordData['A']).address
    case 'CNAME':
    case 'NS':
      return (data as RecordData['NS']).target
    case 'SRV':
      return data
    case 'TXT':
      return splitText((data as RecordData['TXT']).text)
    case 'SOA': {
      const { primary, contact, negativeTtl, ...timers } = data as RecordData['SOA']
      return { mname: primary, rname: contact, minimum: negativeTtl, ...timers }
    }
  }
}
