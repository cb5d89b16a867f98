// From spawn to ready with 10,000 servers in the database, as a multiple of what Node alone needs to start.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { spawnService } from '../test/support/process.ts'
import { median, table } from './measure.ts'

const SERVERS = 10_000
const ROUNDS = 7

export async function run(): Promise<boolean> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-bench-'))
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token }
  try {
    await (await spawnService(env)).kill('SIGTERM')
    fill(dataDir)
    const ready: number[] = []
    const node: number[] = []
    for (let i = 0; i < ROUNDS; i++) {
      node.push(timed(() => spawnSync(process.execPath, ['-e', '0'])))
      const startedAt = performance.now()
      const service = await spawnService(env)
      const reply = await fetch(`${service.url}/readyz`)
      ready.push(performance.now() - startedAt)
      if (reply.status !== 200) throw new Error('not ready')
      await service.kill('SIGTERM')
    }
    const ratios = ready.map((value, i) => value / (node[i] ?? 1))
    table([
      ['ms', 'median', ...ready.map((_, i) => `round ${i + 1}`)],
      [`spawn to ready, ${SERVERS} servers`, median(ready), ...ready],
      ['node -e 0', median(node), ...node],
      ['multiple', median(ratios), ...ratios],
    ])
    return true
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

function timed(work: () => void): number {
  const startedAt = performance.now()
  work()
  return performance.now() - startedAt
}

function fill(dataDir: string): void {
  const db = new DatabaseSync(join(dataDir, 'gamekeeper.db'))
  const insert = db.prepare(
    `insert into servers (id, name, labels, status, created_at, updated_at) values (?, ?, '{}', 'ready', 0, 0)`,
  )
  db.exec('begin')
  for (let i = 0; i < SERVERS; i++) insert.run(`srv_${String(i).padStart(26, '0')}`, `Server ${i}`)
  db.exec('commit')
  db.close()
}
