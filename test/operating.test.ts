// The service as a process: how it starts, who is kept out, how it says that it is well, and how it stops.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { createClient } from '../src/sdk/index.ts'
import { withDatabase } from './support/database.ts'
import { openEvents } from './support/events.ts'
import { killLeftovers, runService, spawnService } from './support/process.ts'
import { startTestService } from './support/service.ts'
import { runPiped } from './support/terminal.ts'
import { until } from './support/until.ts'

let dataDir: string
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
})
after(async () => {
  killLeftovers()
  await rm(dataDir, { recursive: true, force: true })
})

const token = `gk_admin_${randomBytes(32).toString('hex')}`
const env = () => ({ GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token })
const authorization = `Bearer ${token}`

test('the first start shows the admin token once, with the address to open', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  const value = /gk_[0-9a-z]+_[0-9a-f]{64}/g
  const first = await spawnService({ GAMEKEEPER_DATA_DIR: dir })
  const [shown, ...more] = first.output().match(value) ?? []
  assert.ok(shown)
  assert.deepEqual(more, [])
  const reply = await fetch(`${first.url}/v1/game/servers`, { headers: { authorization: `Bearer ${shown}` } })
  assert.equal(reply.status, 200)
  assert.equal(await first.kill('SIGTERM'), 0)
  const second = await spawnService({ GAMEKEEPER_DATA_DIR: dir })
  await second.kill('SIGTERM')
  assert.deepEqual(second.output().match(value), null)
  assert.equal((await stat(join(dir, 'secret.key'))).mode & 0o777, 0o600)
  await rm(dir, { recursive: true, force: true })
})

test('A start with invalid settings names every one of them', async () => {
  const { code, output } = await runService({ ...env(), GAMEKEEPER_PORT: 'x', GAMEKEEPER_RATE_LIMIT: 'y' })
  assert.notEqual(code, 0)
  assert.match(output, /GAMEKEEPER_PORT/)
  assert.match(output, /GAMEKEEPER_RATE_LIMIT/)
  assert.doesNotMatch(output, /\.ts:\d/)
})

test('open streams end, requests under way are answered, jobs go back into the queue, exit code 0 within 10 s', async () => {
  const service = await spawnService(env())
  const call = (method: string, path: string, body?: object) =>
    fetch(`${service.url}/v1/game${path}`, {
      method,
      headers: { authorization, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const { id } = (await (await call('POST', '/servers', { name: 'x' })).json()) as { id: string }
  const events = await openEvents(`${service.url}/v1/game/servers/${id}/activity`, token)
  const slow = slowRequest(service.url, id)
  await slow.sent
  const exited = service.kill('SIGTERM')
  assert.equal(await events.next(), undefined)
  slow.finish()
  assert.match(await slow.answer, /^HTTP\/1\.1 200/)
  // One that takes longer ends itself, and not with 0.
  assert.equal(await exited, 0)
  assert.match(await readFile(join(dataDir, 'gamekeeper.pid'), 'utf8'), /^\d+\n$/)
})

/** A change whose body is half sent, so that it is under way for as long as the test wants. */
function slowRequest(url: string, id: string) {
  const body = JSON.stringify({ name: 'changed in time' })
  const { hostname, port } = new URL(url)
  const answer = Promise.withResolvers<string>()
  const sent = Promise.withResolvers<void>()
  const connecting = import('node:net').then(({ connect }) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    socket.on('close', () => answer.resolve(text))
    socket.on('error', answer.reject)
    const head = [
      `PATCH /v1/game/servers/${id} HTTP/1.1`,
      'host: x',
      `authorization: ${authorization}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      'expect: 100-continue',
    ]
    // The interim answer says that the service has taken up the request.
    socket.once('data', () => {
      socket.write(body.slice(0, 5))
      text = ''
      sent.resolve()
    })
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    return socket
  })
  return {
    sent: sent.promise,
    answer: answer.promise,
    finish: () => void connecting.then((s) => s.write(body.slice(5))),
  }
}

test('it says that it lives, that it is ready, and what is wrong when it is not', async () => {
  await using service = await startTestService()
  const get = async (path: string) => {
    const reply = await fetch(service.url + path)
    return { status: reply.status, body: (await reply.json()) as { checks: Record<string, string> } }
  }
  assert.equal((await get('/healthz')).status, 200)
  assert.deepEqual(await get('/readyz'), {
    status: 200,
    body: { status: 'ready', checks: { database: 'ok', dataDirectory: 'ok', backups: 'ok' } },
  })
  await rename(join(service.dataDir, 'gamekeeper.db'), join(service.dataDir, 'gone.db'))
  const fileGone = await get('/readyz')
  assert.equal(fileGone.status, 503)
  assert.notEqual(fileGone.body.checks.database, 'ok')
  await rename(join(service.dataDir, 'gone.db'), join(service.dataDir, 'gamekeeper.db'))
  assert.equal((await get('/readyz')).status, 200)
  await rename(service.dataDir, `${service.dataDir}-away`)
  const gone = await get('/readyz')
  assert.equal(gone.status, 503)
  assert.notEqual(gone.body.checks.dataDirectory, 'ok')
  assert.equal((await get('/healthz')).status, 200)
  await rename(`${service.dataDir}-away`, service.dataDir)
})

test('connections that PostgreSQL cuts are replaced, and the service lives', async (t) => {
  const admin = process.env.GAMEKEEPER_TEST_POSTGRES
  if (!admin) return t.skip('no PostgreSQL: run the tests with npm test')
  await using service = await startTestService({ engine: 'postgres' })
  const { id } = await service.createServer()
  const client = new pg.Client({ connectionString: admin })
  await client.connect()
  t.after(() => client.end())
  const name = service.databaseUrl?.split('/').at(-1)
  const cutAll = () => client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  const ready = async () => (await fetch(`${service.url}/readyz`)).status
  for (let round = 0; round < 5; round++) {
    const writes = Array.from({ length: 20 }, (_, i) =>
      service.call('PATCH', `/servers/${id}`, { body: { port: round * 100 + i + 1 } }).catch(() => undefined),
    )
    await cutAll()
    await Promise.all(writes)
  }
  // Those that were told to end last do so a moment later.
  await until(async () => (await service.call('PATCH', `/servers/${id}`, { body: { port: 7777 } })).status === 200)
  const verified = await until(async () => {
    const reply = await service.call('GET', '/activity/verify')
    return reply.status === 200 && reply
  })
  assert.equal(verified.body.intact, true)
  await until(async () => (await ready()) === 200)
  await client.query(`alter database ${name} allow_connections false`)
  try {
    // They end when they come to it.
    await until(async () => (await cutAll()).rowCount === 0)
    assert.equal(await ready(), 503)
    const refused = await service.call('GET', '/servers')
    assert.equal(refused.status, 503)
    assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    assert.equal(refused.body.code, 'not_ready')
    assert.doesNotMatch(refused.text, /connection|postgres/i)
  } finally {
    await client.query(`alter database ${name} allow_connections true`)
  }
  await until(async () => (await ready()) === 200)
})

test('requests are answered with 503 not_ready and Retry-After', async (t) => {
  const admin = process.env.GAMEKEEPER_TEST_POSTGRES
  if (!admin) return t.skip('no PostgreSQL: run the tests with npm test')
  await using service = await startTestService({ engine: 'postgres' })
  const client = new pg.Client({ connectionString: admin })
  await client.connect()
  t.after(() => client.end())
  const name = service.databaseUrl?.split('/').at(-1)
  const allow = (allowed: boolean) => client.query(`alter database ${name} allow_connections ${allowed}`)
  const cut = () => client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  await allow(false)
  await until(async () => (await cut()).rowCount === 0)
  const answers: Response[] = []
  const sdk = createClient({
    baseUrl: service.url,
    token: service.adminToken,
    async fetch(input, init) {
      const answer = await fetch(input, init)
      answers.push(answer)
      // Back as soon as the first refusal is on its way.
      if (answers.length === 1) await allow(true)
      return answer
    },
  })
  const made = await sdk.servers.create({ name: 'Patience' })
  assert.equal(made.name, 'Patience')
  assert.equal(answers[0]?.status, 503)
  assert.match(answers[0]?.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.equal(answers.at(-1)?.status, 201)
  const { data } = await sdk.servers.list({ q: 'Patience' })
  assert.equal(data.length, 1)
})

test('A failed backup is logged at level error and makes /readyz and gamekeeper doctor fail until a later backup of that server completes', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  const service = await spawnService({ ...env(), GAMEKEEPER_DATA_DIR: dir, GAMEKEEPER_LOG_LEVEL: 'error' })
  const sdk = createClient({ baseUrl: service.url, token })
  const { id } = await sdk.servers.create({ name: 'x' })
  const files = join(dir, 'servers', id, 'files')
  const backUp = async () => {
    const { id: backupId } = await sdk.backups.create(id)
    return until(async () => {
      const backup = await sdk.backups.read(id, backupId)
      return (backup.status === 'completed' || backup.status === 'failed') && backup
    })
  }
  const ready = async () => (await fetch(`${service.url}/readyz`)).status
  const doctor = () => runPiped(['doctor'], { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: token })
  await rename(files, `${files}-away`)
  await writeFile(files, 'where a directory should be')
  const first = await backUp()
  assert.equal(first.status, 'failed')
  const logged = new RegExp(`"level":50[^\\n]*"backupId":"${first.id}"[^\\n]*a backup failed`)
  await until(async () => logged.test(service.output()))
  const { checks } = await sdk.service.readiness()
  assert.match(checks.backups ?? '', /1 failed and no later one/)
  assert.equal(await ready(), 503)
  const sick = await doctor()
  assert.equal(sick.code, 1)
  assert.match(sick.stdout, /^fail +backups/m)
  await sdk.backups.delete(id, first.id)
  await until(async () => (await ready()) === 200)
  assert.equal((await backUp()).status, 'failed')
  assert.equal(await ready(), 503)
  await rm(files)
  await rename(`${files}-away`, files)
  assert.equal((await backUp()).status, 'completed')
  assert.equal(await ready(), 200)
  assert.equal(await service.kill('SIGTERM'), 0)
  await rm(dir, { recursive: true, force: true })
})

test('metrics are for this machine, and for a token with everything', async () => {
  await using service = await startTestService({ env: { GAMEKEEPER_TRUSTED_PROXIES: '127.0.0.1' } })
  const get = (value: string | null, headers = {}) =>
    fetch(`${service.url}/metrics`, { headers: { ...headers, ...(value ? { authorization: `Bearer ${value}` } : {}) } })
  await service.createServer()
  const local = await get(null)
  assert.equal(local.status, 200)
  assert.match(await local.text(), /gamekeeper_http_answers_total\{operation="createServer",status="201"\} 1/)
  const proxied = { 'x-forwarded-for': '203.0.113.9' }
  assert.equal((await get(null, proxied)).status, 401)
  const narrow = await service.mint(['servers:read', 'tokens:admin'])
  assert.equal((await get(narrow.token, proxied)).status, 403)
  assert.equal((await get(service.adminToken, proxied)).status, 200)
})

test('It is stored as a hash and never logged.', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  const service = await spawnService({
    GAMEKEEPER_DATA_DIR: dir,
    GAMEKEEPER_ADMIN_TOKEN: token,
    GAMEKEEPER_LOG_LEVEL: 'trace',
  })
  const secret = token.split('_').at(-1) ?? ''
  await fetch(`${service.url}/v1/game/servers?token=${token}`)
  await fetch(`${service.url}/v1/game/nowhere?token=${token}`, { headers: { authorization } })
  await fetch(`${service.url}/v1/game/servers?limit=0`, { headers: { authorization } })
  await service.kill('SIGTERM')
  assert.ok(!service.output().includes(secret))
  const rows = await withDatabase({ dataDir: dir, databaseUrl: null }, (db) =>
    db.selectFrom('activity').selectAll().execute(),
  )
  assert.ok(!JSON.stringify(rows).includes(secret))
  await rm(dir, { recursive: true, force: true })
})
