// Drift, orphans and records of others, seen at the start and on demand.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { startTestService } from '../../../test/support/service.ts'
import { ask, editZoneFile, LOCAL_DNS, subdomainCalls } from '../../../test/support/subdomains.ts'
import { until } from '../../../test/support/until.ts'
import type { ChangeableRecordSet } from '../../dns/records.ts'

const ZONES = JSON.stringify([{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7' }])
const env = { GAMEKEEPER_ZONES: ZONES, ...LOCAL_DNS }
const foreign: ChangeableRecordSet = {
  name: 'market.play.test',
  type: 'TXT',
  ttl: 300,
  records: [{ text: 'not yours' }],
}

async function begin(more: Record<string, string> = {}) {
  const settings: Record<string, string> = { ...env, ...more }
  const service = await startTestService({ env: settings })
  const serverId = (await service.createServer({ game: 'minecraft-java', port: 25566 })).id
  const calls = subdomainCalls(service, () => serverId)
  const check = async (repair: boolean) => (await service.call('POST', '/dns/check', { body: { repair } })).body
  const made = async (name: string) => {
    const { body } = await calls.create(name)
    return calls.settled(body.id)
  }
  const edit = async (change: (sets: ChangeableRecordSet[]) => ChangeableRecordSet[]) => {
    await service.halt()
    await editZoneFile(service, 'play.test', change)
    await service.restart()
  }
  return { service, serverId, calls, check, made, edit, [Symbol.asyncDispose]: service.stop }
}
const srvOf = (name: string) => `_minecraft._tcp.${name}.play.test`

describe('reconciliation', () => {
  test('what is missing or altered is repaired soon after the start, and told once', async () => {
    await using t = await begin()
    const [a, b] = [await t.made('missing-one'), await t.made('altered-one')]
    await t.edit((sets) =>
      sets
        .filter(({ name }) => name !== srvOf('missing-one'))
        .map((set) =>
          set.name === 'altered-one.play.test' && set.type === 'A'
            ? { ...set, records: [{ address: '198.51.100.66' }] }
            : set,
        ),
    )
    await until(async () => (await ask(t.service.dns, 'SRV', srvOf('missing-one'))) !== 'NXDOMAIN')
    await until(async () => (await ask(t.service.dns, 'A', 'altered-one.play.test')) === '203.0.113.7')
    for (const { id } of [a, b]) await t.calls.settled(id)
    await until(async () => (await t.check(false)).findings.length === 0)
    const repaired = (await t.calls.events()).filter(({ event }) => event === 'subdomain.repaired')
    assert.deepEqual(repaired.map(({ properties }) => properties.changed).sort(), [
      ['A altered-one.play.test'],
      [`SRV ${srvOf('missing-one')}`],
    ])
  })

  test('a lost or spoilt marker is put back, and what is ours is still found for a deletion', async () => {
    await using t = await begin()
    const [a, b] = [await t.made('unmarked'), await t.made('spoilt')]
    await t.edit((sets) =>
      sets
        .filter(({ name }) => name !== '_gamekeeper.unmarked.play.test')
        .map((set) =>
          set.name === '_gamekeeper.spoilt.play.test' ? ({ ...set, records: [{ text: 'x' }] } as typeof set) : set,
        ),
    )
    for (const { name, id } of [a, b]) {
      await until(async () => /v=gamekeeper1/.test(await ask(t.service.dns, 'TXT', `_gamekeeper.${name}.play.test`)))
      await t.calls.settled(id)
    }
    await t.edit((sets) => sets.filter(({ name }) => !name.startsWith('_gamekeeper.')))
    for (const { id, name } of [a, b]) {
      await t.calls.removeWholly(id)
      assert.equal(await ask(t.service.dns, 'A', `${name}.play.test`), 'NXDOMAIN')
    }
  })

  test('records of ours that nobody owns are removed; records of others and of other instances are not', async () => {
    await using t = await begin()
    const { id } = await t.made('abandoned')
    await t.made('kept')
    const theirs: ChangeableRecordSet[] = [
      foreign,
      { name: 'theirs.play.test', type: 'A', ttl: 60, records: [{ address: '198.51.100.1' }] },
      {
        name: '_gamekeeper.theirs.play.test',
        type: 'TXT',
        ttl: 60,
        records: [{ text: 'v=gamekeeper1 instance=another subdomain=sub_x sets=A:@' }],
      },
      { name: 'www.abandoned.play.test', type: 'A', ttl: 60, records: [{ address: '198.51.100.2' }] },
    ]
    await t.service.halt()
    await withDatabase(t.service, (db) => db.deleteFrom('subdomains').where('id', '=', id).execute())
    await editZoneFile(t.service, 'play.test', (sets) => [...sets, ...theirs])
    await t.service.restart()
    await until(async () => (await ask(t.service.dns, 'TXT', '_gamekeeper.abandoned.play.test')) === 'NXDOMAIN')
    assert.equal(await ask(t.service.dns, 'SRV', srvOf('abandoned')), 'NXDOMAIN')
    assert.equal(await ask(t.service.dns, 'A', 'theirs.play.test'), '198.51.100.1')
    assert.equal(await ask(t.service.dns, 'A', 'www.abandoned.play.test'), '198.51.100.2')
    assert.equal(await ask(t.service.dns, 'TXT', 'market.play.test'), 'not yours')
    assert.equal(await ask(t.service.dns, 'A', 'kept.play.test'), '203.0.113.7')
    // It is told once DNS has been looked at again.
    const [told] = await until(async () => {
      const { data } = (await t.service.call('GET', '/activity?event=subdomain.orphan_removed')).body
      return data.length > 0 && data
    })
    assert.equal(told.properties.hostname, 'abandoned.play.test')
    assert.equal(told.properties.removed.length, 3)
  })

  test('Everything else belongs to somebody else: it is never changed or removed', async () => {
    await using t = await begin()
    await t.made('something')
    await t.edit((sets) => [...sets, foreign])
    const { body } = await t.calls.create('market')
    const failed = await t.calls.reaches(body.id, (now) => now.status === 'failed')
    assert.deepEqual(failed.reason, {
      code: 'conflict',
      detail: 'The name has records that we did not make, and we do not touch those.',
    })
    assert.deepEqual(
      (await t.check(true)).findings.map((finding: { kind: string; repaired: boolean }) => [
        finding.kind,
        finding.repaired,
      ]),
      [['conflict', false]],
    )
    // It is tried again later, which is written down after how it went.
    const queued = `/servers/${t.serverId}/jobs?status=queued`
    const [job] = await until(async () => {
      const { data } = (await t.service.call('GET', queued)).body
      return data.length === 1 && data
    })
    assert.equal(job.error.code, 'dns_unavailable')
    assert.equal((await t.calls.events()).filter(({ event }) => event === 'subdomain.provider_failed').length, 1)
    await t.edit((sets) => sets.filter(({ name }) => name !== 'market.play.test'))
    await t.calls.settled(body.id)
    await t.edit((sets) => [...sets, foreign])
    await t.calls.removeWholly(body.id)
    assert.equal(await ask(t.service.dns, 'TXT', 'market.play.test'), 'not yours')
    assert.equal(await ask(t.service.dns, 'A', 'market.play.test'), 'NOERROR')
  })

  test('A changed target or ttl reaches the records of every subdomain soon after the next start.', async () => {
    const settings: Record<string, string> = { ...env }
    await using service = await startTestService({ env: settings })
    const serverId = (await service.createServer({ game: 'minecraft-java' })).id
    const calls = subdomainCalls(service, () => serverId)
    const { body } = await calls.create('moved')
    await calls.settled(body.id)
    const zones = [{ zone: 'play.test', provider: 'embedded', target: ['203.0.113.8', '2001:db8::8'], ttl: 90 }]
    await service.restart({ GAMEKEEPER_ZONES: JSON.stringify(zones) })
    await until(async () => (await ask(service.dns, 'AAAA', 'moved.play.test')) === '2001:db8::8')
    assert.equal(await ask(service.dns, 'A', 'moved.play.test'), '203.0.113.8')
    await service.restart({ GAMEKEEPER_ZONES: JSON.stringify([{ ...zones[0], target: 'node.example.org' }]) })
    await until(async () => (await ask(service.dns, 'CNAME', 'moved.play.test')) === 'node.example.org')
    assert.equal(await ask(service.dns, 'SRV', srvOf('moved')), '0 0 25565 node.example.org')
  })

  test('a zone that left the configuration: its subdomains say so, and are right again when it is back', async () => {
    await using service = await startTestService({ env })
    const serverId = (await service.createServer({})).id
    const calls = subdomainCalls(service, () => serverId)
    const { body } = await calls.create('homeless')
    await calls.settled(body.id)
    await service.restart({ GAMEKEEPER_ZONES: '' })
    const failed = await calls.reaches(body.id, (now) => now.status === 'failed')
    assert.equal((failed.reason as unknown as { code: string }).code, 'zone_unconfigured')
    assert.equal((await calls.remove(body.id)).status, 202)
    await service.restart({ GAMEKEEPER_ZONES: ZONES })
    await calls.gone(body.id)
    assert.equal(await ask(service.dns, 'A', 'homeless.play.test'), 'NXDOMAIN')
  })

  test('many rounds of the comparison leave no pile of jobs and no pile of entries', async () => {
    await using t = await begin()
    await t.made('calm')
    await t.edit((sets) => [...sets, foreign])
    const { body } = await t.calls.create('market')
    await t.calls.reaches(body.id, (now) => now.status === 'failed')
    const count = async () => [
      (await t.service.call('GET', `/servers/${t.serverId}/jobs`)).body.data.length,
      (await t.calls.events()).length,
    ]
    const before = await count()
    for (let round = 0; round < 4; round++) await t.service.restart()
    await t.check(true)
    assert.deepEqual(await count(), before)
  })

  test('subdomains that come and go during comparisons are never taken for orphans', async () => {
    await using t = await begin()
    let done = false
    const checks = (async () => {
      while (!done) await t.check(true)
    })()
    const churn = async (worker: number) => {
      for (let round = 0; round < 6; round++) {
        const { body } = await t.calls.create(`churn-${worker}`)
        await t.calls.settled(body.id)
        await t.calls.removeWholly(body.id)
      }
      return (await t.calls.create(`churn-${worker}`)).body.id
    }
    try {
      const left = await Promise.all([0, 1, 2].map(churn))
      for (const id of left) await t.calls.settled(id)
    } finally {
      done = true
      await checks
    }
    assert.deepEqual((await t.check(false)).findings, [])
    const events = (await t.service.call('GET', '/activity?event=subdomain.orphan_removed')).body.data
    assert.deepEqual(events, [])
    assert.ok(!(await t.calls.events()).some(({ event }) => event === 'subdomain.repaired'))
  })
})
