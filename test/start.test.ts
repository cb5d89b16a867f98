// How the service starts, from outside: what stands against it in a sentence, who is kept out of a database, and that a
// token is never made that nobody has seen. docs/operating.md promises it.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import pg from 'pg'
import { readConfig } from '../src/control/config.ts'
import { startService } from '../src/main.ts'
import { withDatabase } from './support/database.ts'
import { freshDatabase, onBothEngines } from './support/engines.ts'
import { killLeftovers, runService, type SpawnOptions, spawnService } from './support/process.ts'
import { BINARY, runBinary } from './support/terminal.ts'
import { until } from './support/until.ts'

const folders: string[] = []
after(async () => {
  killLeftovers()
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
})

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  folders.push(folder)
  return folder
}

type Settings = Record<string, string>
const TOKEN = /gk_[0-9a-z]+_[0-9a-f]{64}/g
const NO_STACK = /\.ts:\d|\n\s+at /
const works = async (url: string, token: string | undefined) =>
  (await fetch(`${url}/v1/game/tokens`, { headers: { authorization: `Bearer ${token}` } })).status === 200

/** In this process: for starts of which nothing counts but that they succeed. */
const startHere = (env: Settings) =>
  startService(readConfig({ GAMEKEEPER_PORT: '0', GAMEKEEPER_LOG_LEVEL: 'fatal', ...env }))
const startAndStop = async (env: Settings) => (await startHere(env)).stop()

test('A process that may have fewer than 80 files open is refused its start, in a sentence.', async () => {
  const env = { GAMEKEEPER_DATA_DIR: await newFolder() }
  const { code, output } = await runService(env, { under: ['prlimit', '--nofile=79:79'] })
  assert.equal(code, 1)
  assert.match(output, /may have 79 files open, and Gamekeeper needs 80/)
  assert.doesNotMatch(output, NO_STACK)
})

onBothEngines('the first token', (engine) => {
  const settings = async (): Promise<Settings> => {
    const databaseUrl = await freshDatabase(engine)
    const base = { GAMEKEEPER_DATA_DIR: await newFolder() }
    return databaseUrl === null ? base : { ...base, GAMEKEEPER_DATABASE_URL: databaseUrl }
  }
  const tokensOf = (env: Settings) =>
    withDatabase({ dataDir: env.GAMEKEEPER_DATA_DIR ?? '', databaseUrl: env.GAMEKEEPER_DATABASE_URL ?? null }, (db) =>
      db.selectFrom('tokens').select(['id', 'name']).execute(),
    )

  test('The first start that listens creates the admin token and shows it.', async () => {
    const env = await settings()
    const occupied = createServer().listen(0, '127.0.0.1')
    await once(occupied, 'listening')
    const { port } = occupied.address() as AddressInfo
    const refused = await runService({ ...env, GAMEKEEPER_PORT: String(port) })
    occupied.close()
    assert.equal(refused.code, 1)
    assert.doesNotMatch(refused.output, TOKEN)
    assert.deepEqual(await tokensOf(env), [])
    const service = await spawnService(env)
    const [shown, ...more] = service.output().match(TOKEN) ?? []
    assert.deepEqual(more, [])
    assert.ok(await works(service.url, shown))
    assert.equal(await service.kill('SIGTERM'), 0)
  })

  test('a start that is killed in between, or cannot write to its standard output, creates none, and the next one shows another', async () => {
    const env = await settings()
    // The reading end is closed before the service writes to it.
    const child = spawn('sh', ['-c', `exec "$0" "$@" | true`, process.execPath, BINARY, 'serve'], {
      env: { ...cleanEnv(), GAMEKEEPER_PORT: '0', GAMEKEEPER_LOG_LEVEL: 'fatal', ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const said = (await child.stderr.setEncoding('utf8').toArray()).join('')
    assert.match(said, /^error: The admin token could not be shown \(EPIPE\); none was made\.\n$/)
    assert.deepEqual(await tokensOf(env), [])
    const service = await spawnService(env)
    assert.ok(await works(service.url, service.output().match(TOKEN)?.[0]))
    assert.equal(await service.kill('SIGTERM'), 0)
  })

  test('It prints a new token with full access, once, and records that in the activity.', async () => {
    const env = await settings()
    const first = await spawnService(env)
    const [lost] = first.output().match(TOKEN) ?? []
    const running = await runBinary(['token', 'rescue'], { env })
    assert.equal(running.code, 2)
    assert.match(running.stderr, /is in use by another Gamekeeper/)
    assert.equal(running.stdout, '')
    assert.equal(await first.kill('SIGTERM'), 0)
    const rescued = await runBinary(['token', 'rescue'], { env })
    assert.equal(rescued.code, 0)
    assert.match(rescued.stdout, /^gk_[0-9a-z]+_[0-9a-f]{64}\n$/)
    assert.equal((await tokensOf(env)).length, 2)
    const second = await spawnService(env)
    const authorization = `Bearer ${rescued.stdout.trim()}`
    const ask = async (method: string, path: string) =>
      fetch(`${second.url}/v1/game${path}`, { method, headers: { authorization } })
    const recorded = (await (await ask('GET', '/activity?event=token.created')).json()) as {
      data: { properties: { name: string; tokenId: string }; actor: { type: string } }[]
    }
    assert.deepEqual([recorded.data[0]?.properties.name, recorded.data[0]?.actor.type], ['rescue', 'system'])
    const lostId = `tok_${lost?.split('_')[1]}`
    assert.equal((await ask('DELETE', `/tokens/${lostId}`)).status, 204)
    assert.ok(!(await works(second.url, lost)))
    assert.equal(await second.kill('SIGTERM'), 0)
  })

  test('A start with a used database but no secret.key is refused, and the key is not replaced', async () => {
    const env = await settings()
    const secret = join(env.GAMEKEEPER_DATA_DIR ?? '', 'secret.key')
    await startAndStop(env)
    rmSync(secret)
    const { code, output } = await runService(env)
    assert.equal(code, 1)
    assert.match(output, /secret\.key is missing, and the database was used with it\. Put it back from your backup/)
    assert.doesNotMatch(output, NO_STACK)
    assert.ok(!existsSync(secret))
    await startAndStop({ ...env, GAMEKEEPER_SECRET: randomBytes(32).toString('hex') })
  })
})

test('gamekeeper token rescue makes no new instance where there is none', async () => {
  const empty = join(await newFolder(), 'mistyped')
  const { code, stdout, stderr } = await runBinary(['token', 'rescue', '--data', empty], {})
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /There is no Gamekeeper in .*mistyped/)
  assert.ok(!existsSync(empty))
})

function cleanEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GAMEKEEPER_')))
}

async function refusalOf(env: Settings, options: SpawnOptions = {}): Promise<string> {
  const { code, output } = await runService(env, options)
  assert.equal(code, 1, output)
  assert.doesNotMatch(output, NO_STACK)
  assert.equal(output.trim().split('\n').length, 1, output)
  return output
}

test('a data directory that cannot be written to is refused in a sentence', async () => {
  const folder = await newFolder()
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const remedy = /The data directory .* cannot be used \(.+\)\. Let the user that runs Gamekeeper write there/
  assert.match(await refusalOf({ GAMEKEEPER_DATA_DIR: file }), remedy)
  assert.match(await refusalOf({ GAMEKEEPER_DATA_DIR: join(file, 'below') }), remedy)
  const blocked = join(folder, 'blocked')
  // Also for root, whom no mode keeps out: what should be a file is a directory.
  mkdirSync(join(blocked, 'gamekeeper.lock'), { recursive: true })
  chmodSync(blocked, 0o500)
  assert.match(await refusalOf({ GAMEKEEPER_DATA_DIR: blocked }), remedy)
})

test('a data directory where nobody can make one is refused in a sentence, and the start does not hang', async () => {
  for (const path of ['/proc/nope', '/proc/nope/below']) {
    const said = await refusalOf({ GAMEKEEPER_DATA_DIR: path }, { under: ['timeout', '--signal=KILL', '30'] })
    assert.match(said, /The data directory \/proc\/nope.* cannot be used \(ENOENT\)\. .* or set GAMEKEEPER_DATA_DIR\./)
  }
})

test('a data directory is made with the directories above it, for this user alone', async () => {
  const path = join(await newFolder(), 'made', 'below')
  await startAndStop({ GAMEKEEPER_DATA_DIR: path })
  for (const made of [path, dirname(path)]) assert.equal(statSync(made).mode & 0o777, 0o700)
})

test('a file that is no database is refused in a sentence', async () => {
  const folder = await newFolder()
  writeFileSync(join(folder, 'gamekeeper.db'), 'This is not a database. '.repeat(100))
  assert.match(await refusalOf({ GAMEKEEPER_DATA_DIR: folder }), /The database .*gamekeeper\.db cannot be used/)
})

onBothEngines('a later version', (engine) => {
  test('an older version refuses a database that a newer one has migrated', async () => {
    const databaseUrl = await freshDatabase(engine)
    const dataDir = await newFolder()
    const env = { GAMEKEEPER_DATA_DIR: dataDir, ...(databaseUrl ? { GAMEKEEPER_DATABASE_URL: databaseUrl } : {}) }
    await startAndStop(env)
    await withDatabase({ dataDir, databaseUrl }, async (db) => {
      const row = { name: '999-later', applied_at: 0 }
      await db
        .insertInto('migrations' as 'instance')
        .values(row as never)
        .execute()
    })
    assert.match(await refusalOf(env), /The database was made by a later version of Gamekeeper \(it has 999-later\)/)
  })
})

test('A key can be set, changed or removed while the store is still empty', async () => {
  const env = { GAMEKEEPER_DATA_DIR: await newFolder(), GAMEKEEPER_ADMIN_TOKEN: `gk_admin_${'a'.repeat(64)}` }
  const headers = { authorization: `Bearer ${env.GAMEKEEPER_ADMIN_TOKEN}`, 'content-type': 'application/json' }
  const [key, other] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  // None, one, another, and none again: nothing is sealed yet.
  for (const unused of ['', other, key, '']) await startAndStop({ ...env, GAMEKEEPER_BACKUP_KEY: unused })
  const sealed = await startHere({ ...env, GAMEKEEPER_BACKUP_KEY: key })
  const post = async (path: string, body: object) => {
    const request = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await (await fetch(`${sealed.url}/v1/game${path}`, request)).json()) as { id: string }
  }
  const { id } = await post('/servers', { name: 'Castle' })
  const backup = await post(`/backups/${id}`, {})
  const events = await fetch(`${sealed.url}/v1/game/backups/${id}/${backup.id}`, {
    headers: { ...headers, accept: 'text/event-stream' },
  })
  // The stream ends with the backup.
  assert.match(await events.text(), /"status":"completed"/)
  await sealed.stop()
  const remedy = /Set GAMEKEEPER_BACKUP_KEY or GAMEKEEPER_BACKUP_KEY_FILE to the key that it was made with/
  assert.match(await refusalOf({ ...env, GAMEKEEPER_BACKUP_KEY: other }), /is encrypted with another key/)
  assert.match(await refusalOf(env), remedy)
  await startAndStop({ ...env, GAMEKEEPER_BACKUP_KEY: key })
})

test('PostgreSQL: what stands against a start is said in a sentence', async (t) => {
  const admin = process.env.GAMEKEEPER_TEST_POSTGRES
  if (!admin) return t.skip('no PostgreSQL: run the tests with npm test')
  const base = { GAMEKEEPER_DATA_DIR: await newFolder() }
  const at = (url: string) => refusalOf({ ...base, GAMEKEEPER_DATABASE_URL: url })
  const missing = admin.replace(/\/[^/]*$/, '/none_such')
  assert.match(await at(missing), /does not exist \(database "none_such" does not exist\)\. Make it first/)
  assert.match(await at(admin.replace('gamekeeper@', 'nobody@')), /refuses the user or the password/)
  assert.match(await at('postgres://x@127.0.0.1:9/x'), /cannot be reached \(ECONNREFUSED\)\.$/m)
})

describe('Only one process uses a data directory, and only one uses a database.', () => {
  test('One process per data directory; a second one is refused with a message and exit code 2.', async () => {
    const env = { GAMEKEEPER_DATA_DIR: await newFolder() }
    const first = await spawnService(env)
    const second = await runService(env)
    assert.equal(second.code, 2)
    assert.match(second.output, /data directory .* is in use by another Gamekeeper/)
    assert.match(second.output, new RegExp(String(first.pid)))
    assert.doesNotMatch(second.output, NO_STACK)
    // The lock ends with its holder, however that ends.
    assert.equal(await first.kill('SIGKILL'), 'SIGKILL')
    await startAndStop(env)
  })

  test('One process per database: a second one is refused with a message and exit code 2, whichever data directory it uses.', async (t) => {
    const databaseUrl = process.env.GAMEKEEPER_TEST_POSTGRES && (await freshDatabase('postgres'))
    if (!databaseUrl) return t.skip('no PostgreSQL: run the tests with npm test')
    const settings = async () => ({
      GAMEKEEPER_DATA_DIR: await newFolder(),
      GAMEKEEPER_DATABASE_URL: databaseUrl,
      GAMEKEEPER_SECRET: '5'.repeat(64),
    })
    const env = await settings()
    const first = await spawnService(env)
    const refused = await runService(await settings())
    assert.equal(refused.code, 2)
    assert.match(
      refused.output,
      /is in use by another Gamekeeper \(connected from .* since .*\)\. One process may use it/,
    )
    assert.doesNotMatch(refused.output, NO_STACK)
    const rescue = await runBinary(['token', 'rescue'], { env: await settings() })
    assert.equal(rescue.code, 2)
    // The lock ends with its holder, however that ends.
    assert.equal(await first.kill('SIGKILL'), 'SIGKILL')
    await startAndStop(env)
    await startAndStop(await settings())
  })
})

test('if another process holds it by then, this one stops answering, says why and exits with code 1', async (t) => {
  const databaseUrl = process.env.GAMEKEEPER_TEST_POSTGRES && (await freshDatabase('postgres'))
  if (!databaseUrl) return t.skip('no PostgreSQL: run the tests with npm test')
  const service = await spawnService({
    GAMEKEEPER_DATA_DIR: await newFolder(),
    GAMEKEEPER_DATABASE_URL: databaseUrl,
    GAMEKEEPER_ADMIN_TOKEN: `gk_admin_${'a'.repeat(64)}`,
  })
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  t.after(() => client.end())
  // Only those of this database: the other suites use the same PostgreSQL at the same time.
  const LOCKS = `select pid, classid, objid from pg_locks join pg_database on pg_database.oid = database
    where locktype = 'advisory' and datname = current_database()`
  const [held] = (await client.query(LOCKS)).rows
  // Waits for the lock as any other session would, and has it the moment that the holder's connection ends.
  const taking = client.query('select pg_advisory_lock($1::int, ($2::bigint::bit(32))::int)', [
    held.classid,
    held.objid,
  ])
  const killer = new pg.Client({ connectionString: databaseUrl })
  await killer.connect()
  // Otherwise the holder may have come back before it is asked for.
  await until(async () => (await killer.query(`${LOCKS} and not granted`)).rowCount)
  await killer.query('select pg_terminate_backend($1)', [held.pid])
  await killer.end()
  await taking
  assert.equal(await service.exited, 1)
  assert.match(service.output(), /The database of GAMEKEEPER_DATABASE_URL is in use by another Gamekeeper/)
  assert.doesNotMatch(service.output(), NO_STACK)
})

test('what Node has compiled is kept beside the packages, and where it cannot be, the program runs all the same', async () => {
  const binary = new URL('../bin/gamekeeper.js', import.meta.url).href
  const script = `process.argv.push('gamekeeper', '--version'); await import('${binary}'); console.log(process.getBuiltinModule('module').getCompileCacheDir())`
  const dirWith = (env: Settings) => {
    const { NODE_COMPILE_CACHE: _, ...others } = process.env
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env: { ...others, ...env } })
    const [version, folder = ''] = String(said).split('\n')
    assert.match(version ?? '', /^\d+\.\d+\.\d+$/)
    return folder
  }
  assert.match(dirWith({}), /node_modules\/\.cache\/compiled\/v/)
  const folder = join(await newFolder(), 'compiled')
  assert.ok(dirWith({ NODE_COMPILE_CACHE: folder }).startsWith(folder))
  assert.equal(dirWith({ NODE_COMPILE_CACHE: '/dev/null/compiled' }), 'undefined')
})
