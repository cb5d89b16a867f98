import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startCloudflare } from '../../test/support/cloudflare.ts'
import { freePort, startSilentServer } from '../../test/support/daemons.ts'
import { createCloudflare } from './cloudflare.ts'
import { createGate } from './gate.ts'
import { providerContract } from './provider.contract.ts'
import { type Change, isDnsFault } from './provider.ts'

const zone = 'play.test'
const foreign = { name: `keep.${zone}`, type: 'A', content: '192.0.2.99', ttl: 1, proxied: true }
const mail = { name: `mail.${zone}`, type: 'MX', content: 'mx.example.net', ttl: 300, proxied: false }

async function start(pageSize?: number) {
  const api = await startCloudflare({ [zone]: [foreign, mail] })
  const settings = { token: api.token, baseUrl: api.baseUrl, ...(pageSize ? { pageSize } : {}) }
  return { api, settings, provider: createCloudflare(settings) }
}

function address(label: string, value = '192.0.2.1'): Change {
  return { name: `${label}.${zone}`, type: 'A', ttl: 60, records: [{ address: value }] }
}

providerContract('Cloudflare, against a stand-in', {}, async () => {
  // Pages of three, so that every listing of the suite spans several.
  const { api, settings, provider } = await start(3)
  const silent = await startSilentServer()
  const stolen = 'f'.repeat(40)
  return {
    provider,
    zone,
    foreign: { name: foreign.name, type: 'A', ttl: 300, records: [{ address: foreign.content }] },
    foreignOther: { name: mail.name, type: 'MX' },
    badCredentials: { provider: createCloudflare({ ...settings, token: stolen }), secrets: [stolen] },
    unreachable: createCloudflare({ ...settings, baseUrl: `http://127.0.0.1:${await freePort()}` }),
    silent: createCloudflare({ ...settings, baseUrl: `http://127.0.0.1:${silent.port}`, timeoutMs: 300 }),
    dns: null,
    async close() {
      await silent.close()
      await api.stop()
    },
  }
})

suite('Cloudflare', () => {
  test('one listing and one batch for many changes, and nothing sent for what holds already', async (t) => {
    const { api, provider } = await start()
    t.after(() => api.stop())
    const changes = Array.from({ length: 20 }, (_, index) => address(`n${index}`))
    await provider.apply(zone, changes)
    assert.deepEqual(
      api.requests.map((request) => request.replace(/zones\/[0-9a-f]+/, 'zones/ID').replace(/\?.*/, '')),
      ['GET /client/v4/zones', 'GET /client/v4/zones/ID/dns_records', 'POST /client/v4/zones/ID/dns_records/batch'],
    )
    const sent = api.requests.length
    await provider.apply(zone, changes)
    assert.deepEqual(
      api.requests.slice(sent).filter((request) => request.startsWith('POST')),
      [],
    )
  })

  test('records are DNS only, also where somebody turned the proxy on', async (t) => {
    const { api, provider } = await start()
    t.after(() => api.stop())
    await provider.apply(zone, [address('castle')])
    const castle = () => api.records(zone).filter(({ name }) => name === `castle.${zone}`)
    for (const record of castle()) record.proxied = true
    await provider.apply(zone, [address('castle')])
    assert.deepEqual(
      castle().map(({ proxied }) => proxied),
      [false],
    )
  })

  test('more operations than a batch takes are sent in several', async (t) => {
    const { api, provider } = await start()
    t.after(() => api.stop())
    await provider.apply(
      zone,
      Array.from({ length: 450 }, (_, index) => address(`n${index}`)),
    )
    assert.equal(api.requests.filter((request) => request.startsWith('POST')).length, 3)
    assert.equal(api.records(zone).length, 452)
  })

  test('a TTL below the minimum is invalid before anything is sent', async (t) => {
    const { api, provider } = await start()
    t.after(() => api.stop())
    const call = provider.apply(zone, [{ ...address('castle'), ttl: 30 }])
    await assert.rejects(call, (error) => isDnsFault(error, 'invalid'))
    assert.deepEqual(api.requests, [])
  })

  test('after a 429 nothing is sent until the time that the API named', async (t) => {
    const { api, provider } = await start()
    t.after(() => api.stop())
    api.limit(1, 300)
    const limited = (error: unknown) => {
      assert.ok(isDnsFault(error, 'rate_limited'))
      assert.ok((error.retryAfterMs ?? 0) > 290_000 && (error.retryAfterMs ?? 0) <= 300_000)
      return true
    }
    await assert.rejects(provider.list(zone), limited)
    const sent = api.requests.length
    await assert.rejects(provider.list(zone), limited)
    await assert.rejects(provider.apply(zone, [address('castle')]), limited)
    assert.equal(api.requests.length, sent)
  })

  test('a failure of the API is a server_error, worth a retry', async (t) => {
    const { api, provider } = await start()
    t.after(() => api.stop())
    api.failNext(500)
    await assert.rejects(provider.list(zone), (error) => isDnsFault(error, 'server_error') && error.retryable)
    await provider.apply(zone, [address('castle')])
  })

  test('a token that no header can hold and a password in the address are refused without being quoted', () => {
    const token = 'secret\nsecond line'
    assert.throws(
      () => createCloudflare({ token }),
      (error) => isDnsFault(error, 'invalid') && !error.message.includes('secret'),
    )
    assert.throws(
      () => createCloudflare({ token: 'good', baseUrl: 'https://me:secret@127.0.0.1/' }),
      (error) => isDnsFault(error, 'invalid') && !error.message.includes('secret'),
    )
  })
})

suite('the request gate', () => {
  test('no span holds more than the burst and what the rate adds', async () => {
    let now = 0
    const gate = createGate({ burst: 300, perSecond: 3, maxWaitMs: 0, now: () => now })
    const passed: number[] = []
    for (; now < 900_000; now += 100) {
      for (let tries = 0; tries < 400; tries++) {
        const ok = await gate.pass().then(
          () => true,
          () => false,
        )
        if (!ok) break
        passed.push(now)
      }
    }
    const inWindow = passed.map((from) => passed.filter((at) => at >= from && at < from + 300_000).length)
    assert.ok(Math.max(...inWindow) <= 1200)
    assert.ok(Math.max(...inWindow) > 1190)
  })

  test('lets requests wait for their turn, in order', async () => {
    const gate = createGate({ burst: 1, perSecond: 100, maxWaitMs: 1_000 })
    const order: number[] = []
    const started = performance.now()
    await Promise.all([1, 2, 3, 4].map((turn) => gate.pass().then(() => order.push(turn))))
    assert.deepEqual(order, [1, 2, 3, 4])
    assert.ok(performance.now() - started >= 25)
  })

  test('keeps the order where the process stands still after a request has looked at the clock', async () => {
    let looks = 0
    const now = () => {
      const moment = performance.now()
      if (++looks === 2) while (performance.now() - moment < 60);
      return moment
    }
    const gate = createGate({ burst: 1, perSecond: 20, maxWaitMs: 1_000, now })
    const order: number[] = []
    await Promise.all([1, 2, 3].map((turn) => gate.pass().then(() => order.push(turn))))
    assert.deepEqual(order, [1, 2, 3])
  })

  test('one who need not wait does not overtake one whose timer is late', async () => {
    let moment = 0
    const gate = createGate({ burst: 1, perSecond: 50, maxWaitMs: 1_000, now: () => moment })
    const order: number[] = []
    const passes = [1, 2].map((turn) => gate.pass().then(() => order.push(turn)))
    moment = 40
    passes.push(gate.pass().then(() => order.push(3)))
    await Promise.all(passes)
    assert.deepEqual(order, [1, 2, 3])
  })

  test('lets nobody wait for one who has given up', async () => {
    const gate = createGate({ burst: 1, perSecond: 20, maxWaitMs: 1_000 })
    await gate.pass()
    const leaving = new AbortController()
    const passes = [gate.pass(leaving.signal), gate.pass()]
    leaving.abort()
    const ends = await Promise.allSettled(passes)
    assert.deepEqual([ends[0]?.status, ends[1]?.status], ['rejected', 'fulfilled'])
  })
})
