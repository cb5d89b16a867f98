// A zone with everything in it that can be asked for, the responder for it, and what holds of any answer whatever the bytes.
import assert from 'node:assert/strict'
import * as dnsPacket from 'dns-packet'
import type { RecordSet } from '../records.ts'
import { createResponder, MAX_UDP_BYTES } from './responder.ts'
import { serveZone } from './zone.ts'

export const ZONE = 'play.test'
const soa = {
  primary: 'ns1.play.test',
  contact: 'hostmaster.play.test',
  serial: 7,
  refresh: 3600,
  retry: 600,
  expire: 86_400,
  negativeTtl: 30,
}
const addresses = (count: number) => Array.from({ length: count }, (_, index) => ({ address: `192.0.2.${index}` }))
const sets: RecordSet[] = [
  { name: ZONE, type: 'SOA', ttl: 3600, records: [soa] },
  { name: ZONE, type: 'NS', ttl: 3600, records: [{ target: 'ns1.play.test' }] },
  { name: 'ns1.play.test', type: 'A', ttl: 3600, records: [{ address: '192.0.2.53' }] },
  { name: 'machine.play.test', type: 'A', ttl: 60, records: [{ address: '192.0.2.7' }] },
  { name: 'machine.play.test', type: 'AAAA', ttl: 60, records: [{ address: '2001:db8::7' }] },
  {
    name: '_minecraft._tcp.castle.play.test',
    type: 'SRV',
    ttl: 60,
    records: [{ priority: 0, weight: 5, port: 25_565, target: 'machine.play.test' }],
  },
  { name: 'alias.play.test', type: 'CNAME', ttl: 60, records: [{ target: 'machine.play.test' }] },
  { name: 'dangling.play.test', type: 'CNAME', ttl: 60, records: [{ target: 'gone.play.test' }] },
  { name: 'abroad.play.test', type: 'CNAME', ttl: 60, records: [{ target: 'www.example.org' }] },
  { name: 'loop-a.play.test', type: 'CNAME', ttl: 60, records: [{ target: 'loop-b.play.test' }] },
  { name: 'loop-b.play.test', type: 'CNAME', ttl: 60, records: [{ target: 'loop-a.play.test' }] },
  { name: 'some.play.test', type: 'A', ttl: 60, records: addresses(40) },
  { name: 'many.play.test', type: 'A', ttl: 60, records: addresses(200) },
  { name: 'text.play.test', type: 'TXT', ttl: 60, records: [{ text: 'x'.repeat(600) }] },
]
const zone = serveZone(ZONE, sets)
export const responder = createResponder(new Map([[zone.key, zone]]))

export interface Ask {
  name: string
  type: string
  edns?: { size: number; version?: number; dnssecOk?: boolean }
  flags?: number
  class?: string
}

export function query({ name, type, edns, flags = 0, class: klass = 'IN' }: Ask): Buffer {
  const opt = edns && {
    name: '.',
    type: 'OPT',
    udpPayloadSize: edns.size,
    extendedRcode: 0,
    ednsVersion: edns.version ?? 0,
    flags: edns.dnssecOk ? dnsPacket.DNSSEC_OK : 0,
    options: [],
  }
  return dnsPacket.encode({
    type: 'query',
    id: 0xbeef,
    flags,
    questions: [{ name, type, class: klass }],
    additionals: opt ? [opt] : [],
  } as unknown as dnsPacket.Packet)
}

/** Queries that reach most of what there is. */
export const SAMPLES = [
  query({ name: 'machine.play.test', type: 'A', edns: { size: 1232 } }),
  query({ name: '_minecraft._tcp.castle.play.test', type: 'SRV' }),
  query({ name: 'many.play.test', type: 'ANY', edns: { size: 4096, dnssecOk: true } }),
  query({ name: 'a.b.c.nobody.play.test', type: 'TXT', edns: { size: 512, version: 3 } }),
]

/** It neither throws nor answers a response, and what it says is well formed and within bounds. */
export function assertSound(packet: Buffer, transport: 'udp' | 'tcp' = 'udp'): void {
  const response = responder.respond(packet, transport)
  const slip = responder.slip(packet)
  if (packet.length < 12 || (packet[2] as number) & 0x80) {
    assert.deepEqual([response, slip], [null, null])
    return
  }
  assert.ok(response)
  assert.ok(response.length <= (transport === 'udp' ? MAX_UDP_BYTES : 65_535))
  assert.equal(response.readUInt16BE(0), packet.readUInt16BE(0))
  assert.ok((response[2] as number) & 0x80)
  dnsPacket.decode(response)
  if (slip) assert.ok(slip.length <= packet.length)
}
