import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import * as dnsPacket from 'dns-packet'
import { temporaryDirectory } from '../../../test/support/daemons.ts'
import { needs } from '../../../test/support/needs.ts'
import { frame } from '../exchange.ts'
import type { Change } from '../provider.ts'
import { askAuthority } from '../resolve.ts'
import { createEmbeddedDns, type EmbeddedOptions } from './provider.ts'
import { createZoneFiles, type ZoneStore } from './zonefile.ts'

const run = promisify(execFile)
const zone = 'play.test'
const machine: Change = { name: `machine.${zone}`, type: 'A', ttl: 60, records: [{ address: '192.0.2.7' }] }
const many: Change = {
  name: `many.${zone}`,
  type: 'A',
  ttl: 60,
  records: Array.from({ length: 200 }, (_, index) => ({ address: `192.0.2.${index}` })),
}
const service: Change = {
  name: `_minecraft._tcp.castle.${zone}`,
  type: 'SRV',
  ttl: 60,
  records: [{ priority: 0, weight: 0, port: 25_565, target: machine.name }],
}

async function start(t: TestContext, options: Partial<EmbeddedOptions> & { directory?: string } = {}) {
  const directory = options.directory ?? ownDirectory(t)
  const dns = await createEmbeddedDns({
    zones: [{ zone, nameServerAddresses: { [`ns1.${zone}`]: ['192.0.2.53', '2001:db8::53'] } }],
    store: createZoneFiles(directory),
    host: '127.0.0.1',
    port: 0,
    ...options,
  })
  t.after(() => dns.close())
  return dns
}

function ownDirectory(t: TestContext): string {
  const directory = temporaryDirectory('zones')
  t.after(directory.remove)
  return directory.path
}

function queryOf(name: string, type = 'A', id = 1): Buffer {
  return dnsPacket.encode({ type: 'query', id, questions: [{ name, type: type as 'A' }] })
}

async function connected(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Also by a reset, which a connection gets that is closed with bytes that nobody has read. */
const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))

suite('the embedded server, asked with dig', needs('bind'), () => {
  const dig = async (port: number, ...args: string[]) =>
    (await run('/usr/bin/dig', ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=3', ...args])).stdout

  test('answers, negative answers, truncation and refusals read as they should', async (t) => {
    const dns = await start(t)
    await dns.apply(zone, [machine, service, many])
    assert.equal((await dig(dns.port, '+short', 'SRV', service.name)).trim(), `0 0 25565 ${machine.name}.`)
    assert.match(
      await dig(dns.port, 'SRV', service.name),
      /flags: qr aa rd; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 2/,
    )
    assert.equal((await dig(dns.port, '+short', 'A', many.name)).trim().split('\n').length, 200)
    assert.match(await dig(dns.port, '+ignore', 'A', many.name), /flags: qr aa tc rd/)
    assert.equal((await dig(dns.port, '+tcp', '+short', 'A', machine.name)).trim(), '192.0.2.7')
    assert.match(await dig(dns.port, '+short', 'SOA', zone), /^ns1\.play\.test\. hostmaster\.play\.test\. \d+ /)
    assert.match(await dig(dns.port, 'A', `nobody.${zone}`), /status: NXDOMAIN[\s\S]*AUTHORITY SECTION:[\s\S]*SOA/)
    assert.match(await dig(dns.port, 'A', `castle.${zone}`), /status: NOERROR[\s\S]*AUTHORITY SECTION:[\s\S]*SOA/)
    assert.match(await dig(dns.port, 'A', 'example.org'), /status: REFUSED/)
    assert.match(await dig(dns.port, 'AXFR', zone), /Transfer failed/)
    assert.match(await dig(dns.port, '+edns=1', '+noednsneg', 'A', machine.name), /status: BADVERS/)
    await dns.apply(zone, [{ ...service, records: [] }])
    assert.match(await dig(dns.port, 'SRV', service.name), /status: NXDOMAIN/)
  })
})

suite('the embedded server on disk', () => {
  test('The serial grows with every change', async (t) => {
    const directory = ownDirectory(t)
    const serial = async (dns: { port: number }) => {
      const { recordSet } = await askAuthority({ host: '127.0.0.1', port: dns.port }, zone, 'SOA')
      return recordSet?.type === 'SOA' ? (recordSet.records[0]?.serial ?? 0) : 0
    }
    const first = await start(t, { directory })
    const serials = [await serial(first)]
    await first.apply(zone, [machine])
    serials.push(await serial(first))
    await first.apply(zone, [machine])
    assert.equal(await serial(first), serials[1])
    await first.apply(zone, [service])
    serials.push(await serial(first))
    await first.close()
    const second = await start(t, { directory })
    assert.equal(await serial(second), serials[2])
    assert.ok((await askAuthority(second, service.name, 'SRV')).recordSet)
    assert.deepEqual(
      serials,
      [...new Set(serials)].sort((a, b) => a - b),
    )
    assert.deepEqual(await readdir(directory), [`${zone}.json`])
  })

  test('An unreadable zone file prevents the start and is left untouched.', async (t) => {
    const directory = ownDirectory(t)
    const holding = (set: unknown) => JSON.stringify({ format: 1, zone, serial: 1, recordSets: [set] })
    const damaged = [
      '{"format":1,"zo',
      '',
      holding({ ...machine, name: 'elsewhere.example' }),
      holding({ ...machine, records: [{ address: 'not an address' }] }),
      holding({ ...machine, type: 'NAPTR' }),
    ]
    for (const text of damaged) {
      await writeFile(join(directory, `${zone}.json`), text)
      await assert.rejects(start(t, { directory }), text)
      assert.equal(await readFile(join(directory, `${zone}.json`), 'utf8'), text)
    }
  })

  test('what could not be written is not answered, and the next change goes through', async (t) => {
    const files = createZoneFiles(ownDirectory(t))
    let full = true
    const store: ZoneStore = {
      load: files.load,
      async save(stored) {
        if (full) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
        await files.save(stored)
      },
    }
    const dns = await start(t, { store })
    await assert.rejects(dns.apply(zone, [machine]), { name: 'DnsProviderError', kind: 'server_error' })
    assert.equal((await askAuthority(dns, machine.name, 'A')).rcode, 'NXDOMAIN')
    full = false
    await dns.apply(zone, [machine])
    assert.equal((await askAuthority(dns, machine.name, 'A')).rcode, 'NOERROR')
  })

  test('changes made at once are all there afterwards, in far fewer writes', async (t) => {
    const files = createZoneFiles(ownDirectory(t))
    let writes = 0
    const store: ZoneStore = {
      load: files.load,
      save(stored) {
        writes++
        return files.save(stored)
      },
    }
    const dns = await start(t, { store })
    const names = Array.from({ length: 200 }, (_, index) => `n${index}.${zone}`)
    await Promise.all(names.map((name) => dns.apply(zone, [{ ...machine, name }])))
    const kept = (await files.load(zone))?.recordSets.map((set) => set.name)
    assert.deepEqual(kept, names)
    assert.ok(writes < 10)
  })

  test('of fifty at once for one absent name, one gets it', async (t) => {
    const dns = await start(t)
    const claims = Array.from({ length: 50 }, (_, index) =>
      dns.apply(zone, [{ ...machine, records: [{ address: `192.0.2.${index}` }], onlyIfAbsent: true }]),
    )
    const outcomes = await Promise.allSettled(claims)
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  })
})

suite('the embedded server on the wire', () => {
  test('an answer too large for UDP is fetched over TCP', async (t) => {
    const dns = await start(t)
    await dns.apply(zone, [many])
    const { overTcp, recordSet } = await askAuthority(dns, many.name, 'A')
    assert.deepEqual([overTcp, recordSet?.records.length], [true, 200])
  })

  test('over the rate limit a real client still gets its answer, over TCP', async (t) => {
    const dns = await start(t, { responsesPerSecond: 1, now: () => 0 })
    await dns.apply(zone, [machine])
    assert.equal((await askAuthority(dns, machine.name, 'A')).overTcp, false)
    const limited = await askAuthority(dns, machine.name, 'A')
    assert.deepEqual([limited.overTcp, limited.recordSet?.records.length], [true, 1])
  })

  test('malformed packets by the thousand leave it answering', async (t) => {
    const dns = await start(t, { responsesPerSecond: 0 })
    await dns.apply(zone, [machine])
    const socket = createSocket('udp4')
    t.after(() => socket.close())
    const good = queryOf(machine.name)
    for (let count = 0; count < 5_000; count++) {
      const packet = Buffer.from(good.subarray(0, 1 + ((count * 7) % good.length)))
      packet[(count * 13) % packet.length] = (count * 31) & 0xff
      socket.send(packet, dns.port, '127.0.0.1')
      if (count % 100 === 0) assert.ok((await askAuthority(dns, machine.name, 'A')).recordSet)
    }
    assert.ok((await askAuthority(dns, machine.name, 'A')).recordSet)
  })

  test('queries on one connection are answered in order, however they are cut up', async (t) => {
    const dns = await start(t)
    await dns.apply(zone, [machine])
    const socket = await connected(t, dns.port)
    const sent = Buffer.concat(Array.from({ length: 20 }, (_, id) => frame(queryOf(machine.name, 'A', id))))
    for (let at = 0; at < sent.length; at += 7) socket.write(sent.subarray(at, at + 7))
    let received = Buffer.alloc(0)
    const ids: number[] = []
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      received = Buffer.concat([received, chunk])
      while (received.length >= 2 && received.length >= received.readUInt16BE(0) + 2) {
        ids.push(received.readUInt16BE(2))
        received = received.subarray(received.readUInt16BE(0) + 2)
      }
      if (ids.length === 20) break
    }
    assert.deepEqual(ids, [...Array(20).keys()])
  })

  test('a connection that sends no whole query is closed, also while bytes trickle in', async (t) => {
    const dns = await start(t, { tcp: { idleMs: 100 } })
    const socket = await connected(t, dns.port)
    const trickle = setInterval(() => socket.write(Buffer.of(0)), 40)
    t.after(() => clearInterval(trickle))
    socket.write(Buffer.of(0, 200))
    socket.resume()
    await closed(socket)
  })

  test('connections beyond the limit are closed, and a freed place is taken again', async (t) => {
    const dns = await start(t, { tcp: { connectionsPerAddress: 2 } })
    const [first] = [await connected(t, dns.port), await connected(t, dns.port)]
    const third = await connected(t, dns.port)
    third.resume()
    await closed(third)
    first.destroy()
    await closed(first)
    for (;;) {
      const next = await connected(t, dns.port)
      next.write(frame(queryOf(zone, 'SOA')))
      const answered = new Promise((resolve) => next.once('data', () => resolve(true)))
      if (await Promise.race([answered, closed(next)])) break
    }
  })

  test('a port that is taken, for UDP or for TCP, stops the start', async (t) => {
    const dns = await start(t)
    await assert.rejects(start(t, { port: dns.port }), { code: 'EADDRINUSE' })
    const socket = createSocket('udp4')
    t.after(() => socket.close())
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    await assert.rejects(start(t, { port: socket.address().port }), { code: 'EADDRINUSE' })
  })

  test('closes twice, and refuses calls afterwards', async (t) => {
    const dns = await start(t)
    await dns.close()
    await dns.close()
    await assert.rejects(dns.list(zone), { kind: 'unreachable' })
  })
})
