// A disk that takes no bytes any more, and a database that does not: what callers, those who watch over the service and
// `gamekeeper doctor` hear of it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import pg from 'pg'
import { mount, withoutRoot } from '../src/agent/files/trees.testing.ts'
import type { Engine } from '../src/control/db/database.ts'
import { toFailure } from '../src/http/problem.ts'
import { onBothEngines } from './support/engines.ts'
import { startTestService, type TestService } from './support/service.ts'
import { runPiped } from './support/terminal.ts'
import { until } from './support/until.ts'

async function readiness({ url }: TestService) {
  const reply = await fetch(`${url}/readyz`)
  return { status: reply.status, checks: ((await reply.json()) as { checks: Record<string, string> }).checks }
}

async function packingCode(service: TestService, serverId: string): Promise<string> {
  const { body: job } = await service.call('POST', `/files/${serverId}/pack`, { body: { files: ['a.txt'] } })
  return await until(async () => {
    const { error } = (await service.call('GET', `/servers/${serverId}/jobs/${job.id}`)).body
    return error?.code as string | undefined
  })
}

async function onMountedServers(engine: Engine, work: (service: TestService, servers: string) => Promise<void>) {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-read-only-'))
  const servers = join(dataDir, 'servers')
  mkdirSync(servers)
  try {
    using _mounted = mount(servers, '-t', 'tmpfs', '-o', 'size=64m', 'none')
    const service = await startTestService({ engine, env: { GAMEKEEPER_DATA_DIR: dataDir } })
    try {
      await work(service, servers)
    } finally {
      await service.halt()
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

onBothEngines('a disk that became read-only', (engine) => {
  test('GET /readyz answers 503 when a write would fail', {
    skip: withoutRoot(),
  }, async () => {
    await onMountedServers(engine, async (service, servers) => {
      const { id } = await service.createServer()
      const content = `/files/${id}/content?path=/a.txt`
      assert.equal((await service.call('PUT', content, { body: 'kept' })).status, 201)
      assert.deepEqual((await readiness(service)).status, 200)
      const { url } = (await service.call('GET', `/files/${id}/upload`)).body
      const form = new FormData()
      form.append('files', new Blob(['x']), 'x')
      const env = { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: service.adminToken }

      execFileSync('mount', ['-o', 'remount,ro', servers])
      try {
        const refused = [
          await service.call('PUT', content, { body: 'new' }),
          await service.call('DELETE', `/files/${id}`, { body: { files: ['a.txt'] } }),
          await service.call('POST', `/files/${id}/folder`, { body: { name: 'folder' } }),
          await service.call('POST', `/files/${id}/copy`, { body: { location: '/a.txt' } }),
          await service.call('POST', `/files/${id}/move`, { body: { moves: [{ from: '/a.txt', to: '/b.txt' }] } }),
          await service.call('POST', `/files/${id}/mode`, { body: { files: ['a.txt'], mode: '0600' } }),
          await service.call('POST', '/servers', { body: { name: 'Another' } }),
        ]
        assert.deepEqual(
          refused.map(({ status, body }) => `${status} ${body.code}`),
          refused.map(() => '503 disk_read_only'),
        )
        const upload = await fetch(url, { method: 'POST', body: form })
        assert.deepEqual([upload.status, ((await upload.json()) as { code: string }).code], [503, 'disk_read_only'])
        assert.equal(await packingCode(service, id), 'disk_read_only')
        assert.equal((await service.call('GET', content)).text, 'kept')
        const unready = await until(async () => {
          const found = await readiness(service)
          return found.status === 503 && found
        })
        assert.match(unready.checks.dataDirectory ?? '', /^disk_read_only:/)
        assert.equal(unready.checks.database, 'ok')
        const doctor = await runPiped(['doctor'], env)
        assert.deepEqual([doctor.code, /dataDirectory +disk_read_only/.test(doctor.stdout)], [1, true], doctor.stdout)
      } finally {
        execFileSync('mount', ['-o', 'remount,rw', servers])
      }
      await until(async () => (await readiness(service)).status === 200)
      assert.equal((await service.call('PUT', content, { body: 'new' })).status, 200)
    })
  })
})

test('a PostgreSQL that became read-only is disk_read_only, and not ready', async (t) => {
  if (!process.env.GAMEKEEPER_TEST_POSTGRES) return t.skip('no PostgreSQL: run the tests with npm test')
  await using service = await startTestService({ engine: 'postgres' })
  const name = service.databaseUrl?.split('/').at(-1)
  const client = new pg.Client({ connectionString: process.env.GAMEKEEPER_TEST_POSTGRES })
  await client.connect()
  t.after(() => client.end())
  const setReadOnly = async (value: 'on' | 'off') => {
    await client.query(`alter database ${name} set default_transaction_read_only = ${value}`)
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  }
  await setReadOnly('on')
  const unready = await until(async () => {
    const found = await readiness(service)
    return found.checks.database?.startsWith('disk_read_only:') && found
  })
  assert.equal(unready.status, 503)
  const refused = await service.call('POST', '/servers', { body: { name: 'Castle' } })
  assert.deepEqual([refused.status, refused.body.code], [503, 'disk_read_only'])
  await setReadOnly('off')
  await until(async () => (await readiness(service)).status === 200)
  assert.equal((await service.call('POST', '/servers', { body: { name: 'Castle' } })).status, 201)
})

test('what the system and SQLite say of a disk has a code of its own', (t) => {
  const codeOf = (work: () => void) => {
    try {
      work()
    } catch (error) {
      return toFailure(error).code
    }
    return assert.fail('it should have failed')
  }
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-faults-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  // As `using` throws it where the clean-up fails too, on a disk that became read-only in the middle of a copy.
  const readOnly = Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' })
  assert.equal(
    codeOf(() => {
      throw new SuppressedError(readOnly, new Error('the copy failed'))
    }),
    'disk_read_only',
  )
  // Nothing is mapped at address 0, and the kernel says so by EIO.
  const unreadable = openSync('/proc/self/mem', 'r')
  assert.equal(
    codeOf(() => readSync(unreadable, Buffer.alloc(1), 0, 1, 0)),
    'disk_failing',
  )
  const path = join(folder, 'db')
  const db = new DatabaseSync(path)
  db.exec('create table t (x); pragma max_page_count = 2')
  assert.equal(
    codeOf(() => db.exec(`insert into t values (zeroblob(100000))`)),
    'disk_full',
  )
  const reader = new DatabaseSync(path, { readOnly: true })
  assert.equal(
    codeOf(() => reader.exec('insert into t values (1)')),
    'disk_read_only',
  )
})
