// What every provider owes, run by each adapter's tests against the real thing.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Change, DnsFaultKind, DnsProvider, Endpoint } from './provider.ts'
import { DnsProviderError } from './provider.ts'
import { type RecordSet, type RecordType, sameRecordSet } from './records.ts'
import { askAuthority } from './resolve.ts'

export interface ProviderUnderTest {
  provider: DnsProvider
  /** Holds `foreign`, made by somebody else, before the suite starts. */
  zone: string
  foreign: RecordSet
  /** A set of a type that we have no shape for, where the provider can hold one. */
  foreignOther: { name: string; type: string } | null
  /** Null where the provider has no credentials. */
  badCredentials: { provider: DnsProvider; secrets: string[] } | null
  /** The same provider with nobody listening; null where it is in this process. */
  unreachable: DnsProvider | null
  /** A provider whose server takes the connection and never answers; null where it is in this process. */
  silent: DnsProvider | null
  /** Where the zone is served over DNS for real. */
  dns: Endpoint | null
  close(): Promise<void>
}

export function providerContract(
  name: string,
  options: { skip?: string; inProcess?: boolean },
  start: () => Promise<ProviderUnderTest>,
): void {
  const { inProcess = false, ...suiteOptions } = options
  suite(`DnsProvider contract: ${name}`, suiteOptions, () => {
    let under: ProviderUnderTest
    before(async () => {
      under = await start()
    })
    after(() => under?.close())

    const at = (label: string) => `${label}.${under.zone}`
    const apply = (...changes: Change[]) => under.provider.apply(under.zone, changes)
    const find = async (setName: string, type: RecordType) => {
      const { recordSets } = await under.provider.list(under.zone)
      return recordSets.find((set) => set.name === setName && set.type === type) ?? null
    }

    async function holds(expected: RecordSet) {
      const listed = await find(expected.name, expected.type)
      assert.ok(listed && sameRecordSet(listed, expected), `listed ${JSON.stringify(listed)}`)
      if (!under.dns) return
      const { rcode, authoritative, recordSet } = await askAuthority(under.dns, expected.name, expected.type)
      assert.deepEqual({ rcode, authoritative }, { rcode: 'NOERROR', authoritative: true })
      assert.ok(recordSet && sameRecordSet(recordSet, expected), `answered ${JSON.stringify(recordSet)}`)
    }

    async function lacks(setName: string, type: RecordType) {
      assert.equal(await find(setName, type), null)
      if (under.dns) assert.equal((await askAuthority(under.dns, setName, type)).recordSet, null)
    }

    test('puts, replaces and deletes a set', async () => {
      const first: Change = { name: at('castle'), type: 'A', ttl: 60, records: [{ address: '192.0.2.1' }] }
      await apply(first)
      await holds(first)
      const second: Change = { ...first, ttl: 120, records: [{ address: '192.0.2.2' }, { address: '192.0.2.3' }] }
      await apply(second)
      await holds(second)
      await apply({ ...first, records: [] })
      await lacks(at('castle'), 'A')
    })

    test('applied again, the same changes change nothing and succeed', async () => {
      const set: Change = { name: at('again'), type: 'AAAA', ttl: 60, records: [{ address: '2001:DB8:0::1' }] }
      await apply(set)
      await apply(set)
      await holds(set)
      await apply({ ...set, records: [] })
    })

    test('deleting what is absent is success', async () => {
      await apply({ name: at('never-there'), type: 'SRV', ttl: 60, records: [] })
      await lacks(at('never-there'), 'SRV')
    })

    test('keeps TXT to the byte: quotes, backslashes, spaces, non-ASCII, and more than 255 bytes', async () => {
      const texts = ['say "hi" \\ there;  two  spaces', 'x'.repeat(254) + '"\\'.repeat(150), 'schloß 🏰', '']
      for (const [index, text] of texts.entries()) {
        const set: Change = { name: at(`txt-${index}`), type: 'TXT', ttl: 60, records: [{ text }] }
        await apply(set)
        await holds(set)
        await apply({ ...set, records: [] })
      }
    })

    test('puts SRV and CNAME', async () => {
      const service = at('_minecraft._tcp.srv')
      const srv: Change = {
        name: service,
        type: 'SRV',
        ttl: 60,
        records: [{ priority: 0, weight: 5, port: 25_565, target: at('machine') }],
      }
      const cname: Change = { name: at('alias'), type: 'CNAME', ttl: 60, records: [{ target: at('machine') }] }
      await apply(srv, cname)
      await holds(srv)
      await holds(cname)
      await apply({ ...srv, records: [] }, { ...cname, records: [] })
      await lacks(service, 'SRV')
      await lacks(at('alias'), 'CNAME')
    })

    test('makes several changes in one call, puts and deletes together', async () => {
      const old: Change = { name: at('old'), type: 'A', ttl: 60, records: [{ address: '192.0.2.4' }] }
      await apply(old)
      const sets: Change[] = Array.from({ length: 12 }, (_, index) => ({
        name: at(`many-${index}`),
        type: 'A',
        ttl: 60,
        records: [{ address: `192.0.2.${index + 10}` }],
      }))
      await apply(...sets, { ...old, records: [] })
      for (const set of sets) await holds(set)
      await lacks(at('old'), 'A')
      await apply(...sets.map((set) => ({ ...set, records: [] })))
    })

    test('turns an address into an alias in one call', async () => {
      const address: Change = { name: at('turn'), type: 'A', ttl: 60, records: [{ address: '192.0.2.5' }] }
      const alias: Change = { name: at('turn'), type: 'CNAME', ttl: 60, records: [{ target: at('machine') }] }
      await apply(address)
      await apply({ ...address, records: [] }, alias)
      await holds(alias)
      await lacks(at('turn'), 'A')
      await apply({ ...alias, records: [] })
    })

    test('lists what others made and never touches it', async () => {
      const before = await under.provider.list(under.zone)
      assert.ok(before.recordSets.some((set) => sameRecordSet(set, under.foreign)))
      if (under.foreignOther) {
        assert.deepEqual(before.others, [under.foreignOther])
      }
      const mine: Change = { name: under.foreign.name, type: 'TXT', ttl: 60, records: [{ text: 'beside' }] }
      await apply(mine)
      await holds(under.foreign)
      await apply({ ...mine, records: [] })
      await holds(under.foreign)
      const isSoa = (set: RecordSet) => set.type === 'SOA'
      const after = await under.provider.list(under.zone)
      const sorted = (sets: RecordSet[]) => sets.filter((set) => !isSoa(set)).sort((a, b) => (key(a) < key(b) ? -1 : 1))
      assert.deepEqual(sorted(after.recordSets), sorted(before.recordSets))
    })

    test('onlyIfAbsent fails with conflict and changes nothing', async () => {
      const beside: Change = { name: at('beside'), type: 'A', ttl: 60, records: [{ address: '192.0.2.6' }] }
      const set: Change = {
        name: at('once'),
        type: 'A',
        ttl: 60,
        records: [{ address: '192.0.2.7' }],
        onlyIfAbsent: true,
      }
      await apply(set)
      const other: Change = { ...set, records: [{ address: '192.0.2.8' }] }
      await rejects('conflict', apply(beside, other))
      await holds({ ...set })
      await lacks(at('beside'), 'A')
      await apply({ name: at('once'), type: 'A', ttl: 60, records: [] })
    })

    test('a CNAME beside other data is a conflict and changes nothing', async () => {
      const alias: Change = { name: under.foreign.name, type: 'CNAME', ttl: 60, records: [{ target: at('machine') }] }
      await rejects('conflict', apply(alias))
      await holds(under.foreign)
      const cname: Change = { ...alias, name: at('is-alias') }
      await apply(cname)
      await rejects('conflict', apply({ name: at('is-alias'), type: 'TXT', ttl: 60, records: [{ text: 'x' }] }))
      await holds(cname)
      await apply({ ...cname, records: [] })
    })

    test('a change that can never be made is invalid', async () => {
      const good: Change = { name: at('good'), type: 'A', ttl: 60, records: [{ address: '192.0.2.9' }] }
      const bad: Change[] = [
        { ...good, name: 'elsewhere.example.net' },
        { ...good, name: `${under.zone}.evil` },
        { ...good, name: at('a..b') },
        { ...good, name: at('sp ace') },
        { ...good, records: [{ address: '192.0.2.256' }] },
        { ...good, ttl: -1 },
        good,
      ]
      for (const change of bad) await rejects('invalid', apply(good, change))
      await lacks(at('good'), 'A')
    })

    test('a zone that the provider does not have is zone_missing', async () => {
      await rejects('zone_missing', under.provider.list('missing.example'))
      const set: Change = { name: 'a.missing.example', type: 'A', ttl: 60, records: [{ address: '192.0.2.1' }] }
      await rejects('zone_missing', under.provider.apply('missing.example', [set]))
    })

    // What is in this process has no credentials and cannot be out of reach.
    if (!inProcess) {
      test('bad credentials are refused and never repeated in the error', async () => {
        assert.ok(under.badCredentials)
        const { provider, secrets } = under.badCredentials
        const set: Change = { name: at('intruder'), type: 'A', ttl: 60, records: [{ address: '192.0.2.1' }] }
        for (const call of [() => provider.apply(under.zone, [set]), () => provider.list(under.zone)]) {
          const error = await rejects('refused', call())
          const said = `${error.stack} ${JSON.stringify(error)} ${String((error.cause as Error | undefined)?.stack)}`
          for (const secret of secrets) assert.ok(!said.includes(secret))
        }
        await lacks(at('intruder'), 'A')
      })

      test('a server that is not there is unreachable, and worth a retry', async () => {
        assert.ok(under.unreachable)
        const error = await rejects('unreachable', under.unreachable.list(under.zone))
        assert.equal(error.retryable, true)
      })

      test('a server that never answers is unreachable once the time is up', async () => {
        assert.ok(under.silent)
        const set: Change = { name: at('slow'), type: 'A', ttl: 60, records: [{ address: '192.0.2.1' }] }
        await rejects('unreachable', under.silent.apply(under.zone, [set]))
      })
    }

    test('rejects with the reason of the signal, before and during a call', async () => {
      const reason = new Error('changed my mind')
      await assert.rejects(under.provider.list(under.zone, { signal: AbortSignal.abort(reason) }), reason)
      const set: Change = { name: at('aborted'), type: 'A', ttl: 60, records: [{ address: '192.0.2.1' }] }
      const controller = new AbortController()
      const call = (under.silent ?? under.provider).apply(under.zone, [set], { signal: controller.signal })
      controller.abort(reason)
      await assert.rejects(call, reason)
      await apply({ ...set, records: [] })
    })

    test('says where the zone is answered', async () => {
      const authorities = await under.provider.authorities(under.zone)
      assert.ok(authorities.length > 0)
      if (under.dns) assert.deepEqual(authorities, [under.dns])
    })
  })
}

const key = (set: RecordSet) => `${set.name} ${set.type}`

async function rejects(kind: DnsFaultKind, call: Promise<unknown>): Promise<DnsProviderError> {
  const error = await call.then(
    () => assert.fail(`expected ${kind}, and it succeeded`),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof DnsProviderError, `expected ${kind}, got ${String(error)}`)
  assert.equal(error.kind, kind, error.message)
  return error
}
