import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import * as dnsPacket from 'dns-packet'
import fc from 'fast-check'
import { type Ask, assertSound, query, responder, SAMPLES, ZONE } from './responder.testing.ts'
import { MAX_UDP_BYTES } from './responder.ts'

function respond(packet: Buffer, transport: 'udp' | 'tcp' = 'udp') {
  const response = responder.respond(packet, transport)
  assert.ok(response)
  const decoded = dnsPacket.decode(response) as dnsPacket.DecodedPacket & { rcode: string }
  const names = (section: dnsPacket.Answer[] = []) => section.map(({ name, type }) => `${name} ${type}`)
  return {
    bytes: response.length,
    rcode: decoded.rcode,
    aa: decoded.flag_aa,
    tc: decoded.flag_tc,
    ra: decoded.flag_ra,
    question: decoded.questions?.[0]?.name,
    answers: names(decoded.answers),
    authorities: names(decoded.authorities),
    additionals: names(decoded.additionals),
    decoded,
  }
}

const ask = (name: string, type: string, more: Partial<Ask> = {}) => respond(query({ name, type, ...more }))

suite('what the embedded server answers', () => {
  test('SRV with the addresses of its target, authoritative and without recursion', () => {
    const { rcode, aa, ra, answers, additionals, decoded } = ask('_minecraft._tcp.castle.play.test', 'SRV', {
      flags: 256,
    })
    assert.deepEqual({ rcode, aa, ra, rd: decoded.flag_rd }, { rcode: 'NOERROR', aa: true, ra: false, rd: true })
    assert.deepEqual(answers, ['_minecraft._tcp.castle.play.test SRV'])
    assert.deepEqual(additionals, ['machine.play.test A', 'machine.play.test AAAA'])
    const [srv] = decoded.answers as dnsPacket.SrvAnswer[]
    assert.deepEqual(srv?.data, {
      priority: 0,
      weight: 5,
      port: 25_565,
      target: 'machine.play.test',
    })
  })

  test('SOA and NS at the top, with glue', () => {
    assert.deepEqual(ask(ZONE, 'SOA').answers, ['play.test SOA'])
    const ns = ask(ZONE, 'NS')
    assert.deepEqual([ns.answers, ns.additionals], [['play.test NS'], ['ns1.play.test A']])
  })

  test('NXDOMAIN for a name that is not there, with the SOA and the negative TTL', () => {
    for (const name of ['nobody.play.test', 'a.b.c.nobody.play.test', 'below.machine.play.test']) {
      const { rcode, aa, answers, authorities, decoded } = ask(name, 'A')
      assert.deepEqual(
        { rcode, aa, answers, authorities },
        { rcode: 'NXDOMAIN', aa: true, answers: [], authorities: ['play.test SOA'] },
      )
      const [authority] = decoded.authorities as dnsPacket.SoaAnswer[]
      assert.equal(authority?.ttl, 30)
      assert.deepEqual([authority?.data.mname, authority?.data.serial], ['ns1.play.test', 7])
    }
  })

  test('no data, not NXDOMAIN, for another type and for a name between others', () => {
    for (const name of ['machine.play.test', 'castle.play.test', '_tcp.castle.play.test']) {
      const { rcode, answers, authorities } = ask(name, 'TXT')
      assert.deepEqual(
        { rcode, answers, authorities },
        { rcode: 'NOERROR', answers: [], authorities: ['play.test SOA'] },
      )
    }
    assert.equal(ask('machine.play.test', 'CAA').rcode, 'NOERROR')
  })

  test('aliases are followed inside the zone and no further', () => {
    assert.deepEqual(ask('alias.play.test', 'A').answers, ['alias.play.test CNAME', 'machine.play.test A'])
    assert.deepEqual(ask('alias.play.test', 'CNAME').answers, ['alias.play.test CNAME'])
    const abroad = ask('abroad.play.test', 'A')
    assert.deepEqual([abroad.rcode, abroad.answers, abroad.authorities], ['NOERROR', ['abroad.play.test CNAME'], []])
    const dangling = ask('dangling.play.test', 'A')
    assert.deepEqual([dangling.rcode, dangling.authorities], ['NXDOMAIN', ['play.test SOA']])
    const noData = ask('alias.play.test', 'TXT')
    assert.deepEqual([noData.answers, noData.authorities], [['alias.play.test CNAME'], ['play.test SOA']])
    assert.deepEqual(ask('loop-a.play.test', 'A').answers, ['loop-a.play.test CNAME', 'loop-b.play.test CNAME'])
  })

  test('names match in any case, and the question keeps its own', () => {
    const { question, answers } = ask('MaChine.PLAY.tEst', 'A')
    assert.equal(question, 'MaChine.PLAY.tEst')
    assert.deepEqual(answers, ['MaChine.PLAY.tEst A'])
    assert.equal(ask('NoBody.PLAY.tEst', 'A').rcode, 'NXDOMAIN')
  })

  test('ANY gets one set only', () => {
    assert.deepEqual(ask('machine.play.test', 'ANY').answers, ['machine.play.test A'])
  })

  test('refuses other zones, other classes and transfers', () => {
    const refused = [
      ask('example.org', 'A'),
      ask('test', 'SOA'),
      ask('.', 'NS'),
      ask('xplay.test', 'A'),
      ask('machine.play.test', 'A', { class: 'CH' }),
      ask(ZONE, 'AXFR'),
      ask(ZONE, 'IXFR'),
    ]
    for (const { rcode, aa, answers, authorities } of refused) {
      assert.deepEqual(
        { rcode, aa, answers, authorities },
        { rcode: 'REFUSED', aa: false, answers: [], authorities: [] },
      )
    }
  })

  test('EDNS: says its own size, copies DO, and knows version 0 only', () => {
    const { decoded } = ask('machine.play.test', 'A', { edns: { size: 4096, dnssecOk: true } })
    const [opt] = decoded.additionals as unknown as dnsPacket.OptAnswer[]
    assert.deepEqual([opt?.type, opt?.udpPayloadSize, opt?.flag_do], ['OPT', MAX_UDP_BYTES, true])
    const newer = ask('machine.play.test', 'A', { edns: { size: 4096, version: 1 } })
    const [bad] = newer.decoded.additionals as unknown as dnsPacket.OptAnswer[]
    assert.deepEqual([newer.rcode, bad?.extendedRcode, bad?.ednsVersion, newer.answers], ['NOERROR', 1, 0, []])
    assert.deepEqual(ask('machine.play.test', 'A').additionals, [])
  })

  test('what does not fit is cut at the size that the client takes, and whole over TCP', () => {
    const cases = [
      { edns: undefined, fits: false, max: 512 },
      { edns: { size: 100 }, fits: false, max: 512 },
      { edns: { size: 700 }, fits: true, max: 700 },
      { edns: { size: 4096 }, fits: true, max: MAX_UDP_BYTES },
    ]
    for (const { edns, fits, max } of cases) {
      const { tc, bytes, answers } = ask('some.play.test', 'A', edns ? { edns } : {})
      assert.deepEqual([tc, answers.length], fits ? [false, 40] : [true, 0])
      assert.ok(bytes <= max)
    }
    assert.equal(ask('many.play.test', 'A', { edns: { size: 65_535 } }).tc, true)
    const whole = respond(query({ name: 'many.play.test', type: 'A' }), 'tcp')
    assert.deepEqual([whole.tc, whole.answers.length], [false, 200])
  })

  test('other operations are not implemented; broken packets are format errors; responses are ignored', () => {
    assert.equal(respond(query({ name: ZONE, type: 'SOA', flags: 5 << 11 })).rcode, 'NOTIMP')
    const good = query({ name: 'machine.play.test', type: 'A', edns: { size: 1232 } })
    const broken = {
      'cut short': good.subarray(0, good.length - 3),
      'trailing bytes': Buffer.concat([good, Buffer.of(1)]),
      'no question': Buffer.from(good).fill(0, 5, 6),
      'two questions': Buffer.from(good).fill(2, 5, 6),
      'a pointer in the question': Buffer.from(good).fill(0xc0, 12, 13),
    }
    for (const [what, packet] of Object.entries(broken)) assert.equal(respond(packet).rcode, 'FORMERR', what)
    const response = Buffer.from(good)
    response.writeUInt8(0x80, 2)
    assert.equal(responder.respond(response, 'udp'), null)
    assert.equal(responder.respond(good.subarray(0, 11), 'udp'), null)
  })

  test('a slip is truncated, empty, and no larger than the question', () => {
    const packet = query({ name: 'many.play.test', type: 'A', edns: { size: 4096 } })
    const slip = responder.slip(packet)
    assert.ok(slip && slip.length <= packet.length)
    const decoded = dnsPacket.decode(slip)
    assert.deepEqual([decoded.flag_tc, decoded.answers], [true, []])
  })
})

suite('whatever the bytes', () => {
  const edit = fc.record({ at: fc.nat(200), byte: fc.nat(255) })
  const mutated = fc
    .tuple(fc.constantFrom(...SAMPLES), fc.array(edit, { maxLength: 12 }), fc.nat(80), fc.uint8Array({ maxLength: 30 }))
    .map(([seed, edits, cut, tail]) => {
      const packet = Buffer.concat([seed.subarray(0, Math.max(0, seed.length - (cut > 40 ? 0 : cut))), tail])
      for (const { at, byte } of edits) if (at < packet.length) packet[at] = byte
      return packet
    })
  const anything = fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes))

  test('it neither throws nor answers a response, and what it says is well formed and within bounds', () => {
    fc.assert(
      fc.property(fc.oneof(mutated, anything), (packet) => assertSound(packet)),
      { numRuns: 20_000 },
    )
  })
})
