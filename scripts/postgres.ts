// A throw-away PostgreSQL for tests and benchmarks: its own cluster in a temporary directory, on a port that the system picks.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const BIN = '/usr/lib/postgresql/15/bin'

export interface Postgres {
  /** A superuser's address, ending in the name of the maintenance database. */
  url: string
  stop(): Promise<void>
}

export async function startPostgres(): Promise<Postgres> {
  const dir = mkdtempSync(join(tmpdir(), 'gamekeeper-postgres-'))
  const identity = postgresIdentity()
  if (identity) chownSync(dir, identity.uid, identity.gid)
  const data = join(dir, 'data')
  const init = spawnSync(`${BIN}/initdb`, ['-D', data, '-U', 'gamekeeper', '-A', 'trust', '-E', 'UTF8', '--no-sync'], {
    ...identity,
    cwd: dir,
    encoding: 'utf8',
  })
  if (init.status !== 0) throw new Error(`initdb failed: ${init.stderr}`)
  const port = await freePort()
  const args = [
    '-D',
    data,
    '-p',
    String(port),
    '-h',
    '127.0.0.1',
    '-k',
    dir,
    '-c',
    'max_connections=300',
    '-c',
    'fsync=off',
    // Every suite has a database of its own, and a worker for each of them would start many times a second.
    '-c',
    'autovacuum=off',
  ]
  const child = spawn(`${BIN}/postgres`, args, { ...identity, cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] })
  await untilReady(child)
  return {
    url: `postgres://gamekeeper@127.0.0.1:${port}/postgres`,
    async stop() {
      child.kill('SIGINT')
      if (child.exitCode === null) await once(child, 'exit')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** PostgreSQL refuses to run as root; Debian's package makes a user for it. */
function postgresIdentity(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout)
  return { uid: id('-u'), gid: id('-g') }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

function untilReady(child: ChildProcess): Promise<void> {
  let log = ''
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`postgres did not start: ${log}`)))
    child.stderr?.on('data', (chunk: Buffer) => {
      if (log.length < 64_000) log += chunk
      if (log.includes('database system is ready to accept connections')) resolve()
    })
  })
}
