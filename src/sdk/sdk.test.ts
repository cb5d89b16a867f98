import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { startTestService, type TestService } from '../../test/support/service.ts'
import { startProxy, startScripted } from '../../test/support/unreliable.ts'
import { OPERATIONS } from '../contract/index.ts'
import { ApiError, type Client, createClient, isApiError, JobError, TransportError } from './index.ts'

const ZONES = JSON.stringify([{ zone: 'play.test', provider: 'embedded', target: '203.0.113.7', ttl: 60 }])

test('every operation of the contract has a method', () => {
  const client = createClient({ baseUrl: 'http://localhost', token: null })
  const groups = Object.values(client).filter((group) => typeof group === 'object')
  const methods = groups.flatMap((group) => Object.values(group))
  const covered = methods.flatMap((method) => ('operation' in method ? [method.operation.id] : []))
  const missing = OPERATIONS.map(({ id }) => id).filter((id) => !covered.includes(id as never))
  assert.deepEqual(missing, [], 'operations without a method in src/sdk')
})

test('the client imports nothing that a browser does not have', () => {
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  for (const file of files) {
    const imports = readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/from '([^']+)'/g)
    for (const [, from = ''] of imports) assert.match(from, /^\.\/|^\.\.\/contract\//, `${file} imports ${from}`)
  }
})

test('an address that is none is refused at once', () => {
  for (const baseUrl of ['', 'localhost:8080', 'ftp://example.org', 'http://user:secret@example.org', 'http://a/?q']) {
    assert.throws(() => createClient({ baseUrl }), TypeError)
  }
})

describe('the client against the service', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await startTestService({
      env: { GAMEKEEPER_ZONES: ZONES, GAMEKEEPER_DNS_PORT: '0', GAMEKEEPER_DNS_HOST: '127.0.0.1' },
    })
    client = createClient({ baseUrl: `${service.url}/`, token: service.adminToken })
  })
  after(() => service.stop())

  test('servers: create, read, change, list, delete', async () => {
    const created = await client.servers.create({ name: 'Castle', game: 'minecraft-java', limits: { backups: 3 } })
    assert.match(created.id, /^srv_/)
    assert.deepEqual(await client.servers.read(created.id), created)
    const changed = await client.servers.change(created.id, { port: 25566, game: null })
    assert.deepEqual([changed.port, changed.game, changed.limits.backups], [25566, null, 3])
    const page = await client.servers.list({ q: 'Castle' })
    assert.deepEqual(page, { data: [changed], nextCursor: null })
    const statuses: string[] = []
    await client.servers.deleteAndWait(created.id, 'Castle', { onProgress: (job) => statuses.push(job.status) })
    const [deleted] = (await client.servers.list({ deleted: true })).data
    assert.deepEqual([deleted?.id, deleted?.status], [created.id, 'deleted'])
    assert.deepEqual((await client.servers.planDeletion(created.id)).frees, deleted?.deletion?.frees)
    assert.equal((await client.servers.undeleteAndWait(created.id)).status, 'ready')
    await client.servers.deleteAndWait(created.id, 'Castle', { purge: true })
    await assert.rejects(client.servers.read(created.id), (error) => isApiError(error, 'not_found'))
  })

  test('servers: all goes through every page, once each', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `Paged ${index}`)
    for (const name of names) await client.servers.create({ name })
    const seen: string[] = []
    for await (const server of client.servers.all({ q: 'Paged', limit: 3 })) seen.push(server.name)
    assert.deepEqual(seen, names.toReversed())
  })

  test('tokens: create, use, list, revoke', async () => {
    const { id, token } = await client.tokens.create({ name: 'reader', scopes: ['servers:read'], servers: '*' })
    const reader = createClient({ baseUrl: service.url, token })
    await reader.servers.list()
    assert.ok((await client.tokens.list()).data.some((record) => record.id === id))
    const ids: string[] = []
    for await (const record of client.tokens.all({ limit: 1 })) ids.push(record.id)
    assert.ok(ids.includes(id) && ids.length >= 2)
    assert.equal(await client.tokens.revoke(id), undefined)
    await assert.rejects(reader.servers.list(), (error) => isApiError(error, 'unauthenticated'))
  })

  test('activity: pages, exports, and the check of the chain; the source is the sdk', async () => {
    const { id } = await client.servers.create({ name: 'Busy' })
    for (let port = 1; port <= 5; port++) await client.servers.change(id, { port })
    const first = await client.activity.list(id, { limit: 2, event: 'server.*' })
    assert.equal(first.data.length, 2)
    assert.equal(first.data[0]?.source, 'sdk')
    const entries = await Array.fromAsync(client.activity.all(id, { limit: 2 }))
    assert.equal(entries.length, 6)
    const ndjson = await new Response(await client.activity.export(id, 'ndjson')).text()
    assert.deepEqual(
      ndjson
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
      entries,
    )
    const csv = await new Response(await client.activity.export(null, 'csv', { event: 'server.changed' })).text()
    assert.match(csv, /^id,timestamp,event/)
    assert.deepEqual(await client.activity.verify(id), { intact: true, chains: 1, entries: 6, fault: null })
    assert.equal((await client.activity.verifyEverything()).intact, true)
    const everything = await client.activity.listEverything({ limit: 1 })
    assert.equal(everything.data.length, 1)
    const all = await Array.fromAsync(client.activity.allOfEverything({ event: 'server.created' }))
    assert.ok(all.some((entry) => entry.serverId === id))
  })

  test('jobs: read, list, wait with progress, cancel', async () => {
    const { id: serverId } = await client.servers.create({ name: 'Worker' })
    using jobs = jobsTable(service, serverId)
    jobs.insert('job_1')
    assert.equal((await client.jobs.read(serverId, 'job_1')).status, 'queued')
    assert.deepEqual(
      (await client.jobs.list(serverId, { status: 'queued' })).data.map(({ id }) => id),
      ['job_1'],
    )
    assert.equal((await Array.fromAsync(client.jobs.all(serverId))).length, 1)
    await assert.rejects(client.jobs.cancel(serverId, 'job_1'), (error) => isApiError(error, 'server_busy'))
    const seen: number[] = []
    // Written behind the service's back, so no stream tells of it; one that is cut is done without.
    await using proxy = await startProxy(service.url)
    const patient = createClient({ baseUrl: proxy.url, token: service.adminToken })
    const done = await patient.jobs.wait(serverId, 'job_1', {
      onProgress({ status, progress }) {
        seen.push(progress.bytesDone)
        if (status === 'queued') jobs.set('job_1', 'running', 50)
        else if (status === 'running') jobs.set('job_1', 'completed', 100)
        if (status !== 'completed') proxy.cut()
      },
    })
    assert.equal(done.status, 'completed')
    assert.deepEqual(seen, [0, 50, 100])
    jobs.insert('job_2')
    jobs.set('job_2', 'failed', 10)
    await assert.rejects(client.jobs.wait(serverId, 'job_2'), (error) => error instanceof JobError)
    jobs.insert('job_3')
    const stop = new AbortController()
    const waiting = client.jobs.wait(serverId, 'job_3', { signal: stop.signal, onProgress: () => stop.abort() })
    await assert.rejects(waiting, { name: 'AbortError' })
  })

  test('subdomains: zones, create, read, list, check, delete', async () => {
    const { id } = await client.servers.create({ name: 'Named', game: 'minecraft-java', port: 25565 })
    assert.deepEqual(
      (await client.subdomains.zones(id)).data.map(({ zone }) => zone),
      ['play.test'],
    )
    const created = await client.subdomains.create(id, { name: 'castle', zone: 'play.test' })
    assert.equal((await client.subdomains.read(id, created.id)).name, 'castle')
    assert.deepEqual(
      (await client.subdomains.list(id)).data.map((each) => each.id),
      [created.id],
    )
    assert.equal((await Array.fromAsync(client.subdomains.all(id, { limit: 1 }))).length, 1)
    assert.equal((await client.dns.check()).zones, 1)
    await client.subdomains.delete(id, created.id)
    await assert.rejects(client.subdomains.read(id, created.id), (error) => isApiError(error, 'not_found'))
  })

  test('readiness needs no token and tells the time', async () => {
    const { ready, checks, time } = await createClient({ baseUrl: service.url }).service.readiness()
    assert.equal(ready, true)
    assert.equal(checks.database, 'ok')
    assert.ok(time && Math.abs(time.getTime() - Date.now()) < 60_000)
  })

  test('any operation can be called by itself', async () => {
    const { operation } = client.servers.list
    const page = await client.call(operation, { query: { limit: 1 } })
    assert.equal(page.data.length, 1)
  })

  test('errors carry code, status, detail, fields and the request id', async () => {
    const wrong = client.servers.create({ name: '', port: 0 })
    await assert.rejects(wrong, (error) => {
      assert.ok(error instanceof ApiError)
      assert.deepEqual([error.code, error.status, error.attempts], ['invalid_request', 400, 1])
      assert.deepEqual(
        error.errors.map(({ path }) => path).sort(),
        ['/name', '/name', '/port'].slice(-error.errors.length),
      )
      assert.match(error.requestId ?? '', /^req_/)
      return true
    })
    const nobody = createClient({ baseUrl: service.url })
    await assert.rejects(nobody.servers.list(), (error) => isApiError(error, 'unauthenticated'))
    const { token } = await service.mint(['servers:read'])
    const reader = createClient({ baseUrl: service.url, token })
    await assert.rejects(reader.servers.create({ name: 'no' }), (error) => isApiError(error, 'forbidden'))
  })

  test('an id that would become another path is refused before it is sent', async () => {
    const before = await client.tokens.list()
    for (const id of ['', '.', '..']) {
      await assert.rejects(client.tokens.revoke(id), (error) => isApiError(error, 'invalid_request'))
    }
    await assert.rejects(client.servers.read('../tokens'), (error) => isApiError(error, 'not_found'))
    assert.equal((await client.tokens.list()).data.length, before.data.length)
  })
})

test('a job that is cancelled answers with the job', async () => {
  const job = { id: 'job_1', kind: 'restore', status: 'cancelled', progress: {}, error: null, result: null }
  await using server = await startScripted([{ status: 202, body: job }])
  const client = createClient({ baseUrl: server.url, token: 'gk_x' })
  assert.equal((await client.jobs.cancel('srv_1', 'job_1')).status, 'cancelled')
  assert.deepEqual(
    server.seen.map(({ method, url }) => `${method} ${url}`),
    ['DELETE /v1/game/servers/srv_1/jobs/job_1'],
  )
})

test('what is not the service is named as such', async () => {
  await using server = await startScripted([{ status: 200, body: '<html>' }])
  const client = createClient({ baseUrl: server.url })
  const foreign = (error: unknown) => error instanceof TransportError && error.fault === 'foreign_answer'
  await assert.rejects(client.servers.list(), foreign)
  await assert.rejects(client.service.readiness(), foreign)
})

/** The service's own table, so that a job can stand still for as long as a test looks at it. */
function jobsTable({ dataDir }: TestService, serverId: string) {
  const db = new DatabaseSync(join(dataDir, 'gamekeeper.db'), { timeout: 5000 })
  const later = Date.now() + 3600_000
  const progress = (bytesDone: number) => JSON.stringify({ filesDone: 0, filesTotal: null, bytesDone, bytesTotal: 100 })
  return {
    insert(id: string) {
      db.prepare(
        `insert into jobs (id, kind, server_id, status, cancel, input, progress, attempts, due_at, created_at)
         values (?, 'standing-still', ?, 'queued', 0, '{}', ?, 0, ?, ?)`,
      ).run(id, serverId, progress(0), later, Date.now())
    },
    set(id: string, status: string, bytesDone: number) {
      db.prepare('update jobs set status = ?, progress = ? where id = ?').run(status, progress(bytesDone), id)
    },
    [Symbol.dispose]: () => db.close(),
  }
}
