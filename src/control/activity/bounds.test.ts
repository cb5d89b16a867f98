// Whatever a tenant sends, an entry stays small, a reader gets it in small pieces, and nothing of it is kept twice.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { withDatabase } from '../../../test/support/database.ts'
import { onBothEngines } from '../../../test/support/engines.ts'
import { openEvents } from '../../../test/support/events.ts'
import { appendOldEntries } from '../../../test/support/old-entries.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'
import type { ActivityEntry } from '../../contract/activity.ts'
import { JOB_INPUT_KEPT_BYTES, PROPERTIES_MAX_BYTES } from '../../contract/fixed-limits.ts'

const MANY = Array.from({ length: 1000 }, (_, i) => `${i}-${'x'.repeat(240)}/${'y'.repeat(240)}/${'z'.repeat(240)}`)

onBothEngines('bounds of the activity', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({ engine })
  })
  after(() => service.stop())

  const entriesOf = async (id: string, query = ''): Promise<ActivityEntry[]> =>
    (await service.call('GET', `/servers/${id}/activity?${query}`)).body.data
  const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
  const isWhole = async (id: string) =>
    (await service.call('GET', `/servers/${id}/activity/verify`)).body.intact as boolean
  async function ended(id: string, jobId: string) {
    let job = (await service.call('GET', `/servers/${id}/jobs/${jobId}`)).body
    await until(async () => {
      job = (await service.call('GET', `/servers/${id}/jobs/${jobId}`)).body
      return job.finishedAt !== null
    })
    return job
  }

  test('The properties of an entry are limited to 8 KiB. Long lists and texts are truncated, and cut says how many items or characters were left out where', async () => {
    const { id } = await service.createServer()
    const { body: job } = await service.call('POST', `/files/${id}/pack`, { body: { files: MANY } })
    const { body: deleted } = await service.call('DELETE', `/files/${id}`, { body: { files: MANY } })
    assert.equal(deleted.missing.length, MANY.length, 'the answer is whole')
    await ended(id, job.id)
    const entries = await entriesOf(id)
    for (const { event, properties } of entries) assert.ok(bytesOf(properties) <= PROPERTIES_MAX_BYTES, event)
    const started = entries.find(({ event }) => event === 'job.started')
    const kept = started?.properties.files as string[]
    assert.ok(kept.length > 0)
    assert.deepEqual(kept, MANY.slice(0, kept.length))
    assert.deepEqual(started?.properties.cut, { '/files': MANY.length - kept.length })
    assert.equal(started?.properties.jobId, job.id)
    assert.equal(await isWhole(id), true)
  })

  test('a deletion of many names is one small entry, and its trash has them all', async () => {
    const { id } = await service.createServer()
    const names = Array.from({ length: 60 }, (_, i) => `${String(i).padStart(3, '0')}${'n'.repeat(200)}`)
    for (const name of names)
      await service.call('PUT', `/files/${id}/content?path=/${name}`, {
        body: 'x',
        headers: { 'content-type': 'application/octet-stream' },
      })
    const { body } = await service.call('DELETE', `/files/${id}`, { body: { files: names } })
    assert.deepEqual(body.deleted, names)
    const [entry] = await entriesOf(id, 'event=file.deleted')
    assert.ok(bytesOf(entry?.properties) <= PROPERTIES_MAX_BYTES)
    assert.ok(entry?.properties.cut)
    assert.equal(await isWhole(id), true)
  })

  test("A job's input is kept in full until it has ended; large input is then dropped.", async () => {
    const { id } = await service.createServer()
    const { body: job } = await service.call('POST', `/files/${id}/pack`, { body: { files: MANY } })
    assert.equal((await ended(id, job.id)).status, 'failed')
    const row = await withDatabase(service, (db) =>
      db.selectFrom('jobs').selectAll().where('id', '=', job.id).executeTakeFirstOrThrow(),
    )
    assert.ok(Buffer.byteLength(row.input) <= JOB_INPUT_KEPT_BYTES)
  })

  test('Larger entries from older versions can still be verified, paged, exported and followed', async () => {
    const { id } = await service.createServer()
    const files = (index: number) => Array.from({ length: 1000 }, (_, i) => `${index} ${i} ${'x'.repeat(500)}`)
    const ids = await appendOldEntries(service, id, 5, (index) => ({ files: files(index) }))
    await service.call('PATCH', `/servers/${id}`, { body: { name: 'after' } })
    assert.equal(await isWhole(id), true)

    const paged = [...(await entriesOf(id, 'limit=3'))]
    assert.equal(paged.length, 3)
    const all = await entriesOf(id)
    assert.deepEqual(
      all.map((entry) => entry.id).filter((entryId) => ids.includes(entryId)),
      ids.toReversed(),
    )
    for (const { properties } of all) assert.ok(bytesOf(properties) <= PROPERTIES_MAX_BYTES)

    const { text } = await service.call('GET', `/servers/${id}/activity`, {
      headers: { accept: 'application/x-ndjson' },
    })
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as ActivityEntry)
    assert.equal(lines.length, 7)
    assert.deepEqual(lines.find((entry) => entry.id === ids[2])?.properties.files, files(2), 'an export has it whole')

    const stream = await openEvents(`${service.url}/v1/game/servers/${id}/activity`, service.adminToken, {
      'last-event-id': ids[0] ?? '',
    })
    for (const expected of ids.slice(1)) assert.equal((await stream.next())?.id, expected)
    assert.equal((await stream.next())?.data.event, 'server.changed')
    stream.close()
    const found = await entriesOf(id, `q=${encodeURIComponent('4 999 xxx')}`)
    assert.deepEqual(
      found.map((entry) => entry.id),
      [ids[4]],
    )
  })
})
