// A million entries in one server: deep pages, an export in constant memory, and writing next to bare transactions.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { hashEntry, sealHead } from '../src/control/activity/chain.ts'
import { keyFor, loadSecret } from '../src/control/secrets.ts'
import { type ServiceProcess, spawnService } from '../test/support/process.ts'
import { holds, median, table } from './measure.ts'

const ENTRIES = 1_000_000
const DEEP = 900_000
const WRITES = 800
const AT_ONCE = 16
const MIB = 1024 * 1024

export async function run(): Promise<boolean> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-bench-'))
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' }
  let service = await spawnService(env)
  const call = callerOf(() => service, token)
  try {
    const { id } = (await (await call('POST', '/servers', { name: 'Castle' })).json()) as { id: string }
    await service.kill('SIGTERM')
    const deepId = fill(dataDir, id)
    service = await spawnService(env)
    const verdicts = [
      await pages(call, id, deepId),
      await exportAll(service, call, id),
      await writes(call, id, dataDir),
    ]
    return verdicts.every(Boolean)
  } finally {
    await service.kill('SIGKILL')
    await rm(dataDir, { recursive: true, force: true })
  }
}

type Call = (method: string, path: string, body?: object, headers?: Record<string, string>) => Promise<Response>

const callerOf =
  (service: () => ServiceProcess, token: string): Call =>
  (method, path, body, headers = {}) =>
    fetch(`${service().url}/v1/game${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })

/** Writes the entries as the service would have, in bulk. Returns the time of the entry at the deep end. */
function fill(dataDir: string, chain: string): string {
  const key = keyFor(loadSecret(dataDir, null), 'activity')
  const db = new DatabaseSync(join(dataDir, 'gamekeeper.db'))
  const model = db.prepare('select * from activity where chain = ? and seq = 1').get(chain) as Record<
    string,
    string | number | null
  >
  const columns = Object.keys(model)
  const insert = db.prepare(
    `insert into activity (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
  )
  const from = Date.now() - 30 * 86_400_000
  let hash = String(model.hash)
  let deep = 0
  db.exec('pragma synchronous = off; begin')
  for (let seq = 2; seq <= ENTRIES; seq++) {
    const at = Math.max(Number(model.at), from) + seq
    if (seq === ENTRIES - DEEP) deep = at
    const properties = JSON.stringify({ changes: { port: { from: seq % 65_000, to: (seq + 1) % 65_000 } } })
    const row = { ...model, seq, id: `act_${String(seq).padStart(26, '0')}`, event: 'server.changed', properties, at }
    hash = hashEntry(key, hash, row as never)
    insert.run(...columns.map((column) => ({ ...row, hash })[column as 'hash'] ?? null))
  }
  const head = {
    chain,
    seq: ENTRIES,
    hash,
    at: Math.max(Number(model.at), from) + ENTRIES,
    purged_seq: 0,
    purged_hash: '',
  }
  db.prepare('update activity_heads set seq = ?, hash = ?, at = ?, seal = ? where chain = ?').run(
    head.seq,
    head.hash,
    head.at,
    sealHead(key, head),
    chain,
  )
  db.exec('commit; pragma wal_checkpoint(truncate)')
  db.close()
  return new Date(deep).toISOString()
}

async function pages(call: Call, id: string, deepTime: string): Promise<boolean> {
  const path = `/servers/${id}/activity`
  const first = (await (await call('GET', `${path}?until=${deepTime}`)).json()) as { nextCursor: string }
  const time = async (query: string) => {
    const startedAt = performance.now()
    const reply = await call('GET', path + query)
    await reply.text()
    if (reply.status !== 200) throw new Error(`${query}: ${reply.status}`)
    return performance.now() - startedAt
  }
  const near: number[] = []
  const deep: number[] = []
  for (let i = 0; i < 60; i++) {
    near.push(await time(''))
    deep.push(await time(`?cursor=${first.nextCursor}`))
  }
  table([
    ['page of 50 among 1,000,000', 'ms (median of 60)'],
    ['first', median(near)],
    ['at depth 900,000', median(deep)],
  ])
  return holds('the deep page over the first', median(deep) / median(near), '<=', 1.5)
}

const WARM_UP_BYTES = 10 * MIB

const rssMib = (pid: number) =>
  (Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024) / MIB

async function exportAll(service: ServiceProcess, call: Call, id: string): Promise<boolean> {
  const rows: (string | number)[][] = [
    ['export of 1,000,000 entries', 'seconds', 'MiB', 'RSS before', 'RSS at most', 'grown by'],
  ]
  let worst = 0
  // The beginning of one first, so that what is measured is the export and not the first use of the code.
  for (const accept of ['application/x-ndjson', 'application/x-ndjson', 'text/csv']) {
    const isFirst = rows.length === 1
    const before = rssMib(service.pid)
    const startedAt = performance.now()
    const reply = await call('GET', `/servers/${id}/activity`, undefined, { accept })
    let [bytes, most, chunks] = [0, before, 0]
    for await (const chunk of reply.body ?? []) {
      bytes += chunk.length
      if (++chunks % 50 === 0) most = Math.max(most, rssMib(service.pid))
      if (isFirst && bytes > WARM_UP_BYTES) break
    }
    rows.push([
      isFirst ? 'its beginning, to warm up' : accept,
      (performance.now() - startedAt) / 1000,
      bytes / MIB,
      before,
      most,
      most - before,
    ])
    if (!isFirst) worst = Math.max(worst, most - before)
  }
  table(rows)
  return holds('what an export adds to the memory, in MiB', worst, '<=', 32)
}

/** A change a time, 16 at once, next to the least that such a change costs on the same disk: one transaction, one sync. */
async function writes(call: Call, id: string, dataDir: string): Promise<boolean> {
  const ours: number[] = []
  const bare: number[] = []
  let port = 1
  for (let round = 0; round < 3; round++) {
    let left = WRITES
    const startedAt = performance.now()
    const writer = async () => {
      while (left-- > 0) await (await call('PATCH', `/servers/${id}`, { port: port++ })).arrayBuffer()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, writer))
    ours.push((WRITES / (performance.now() - startedAt)) * 1000)
    bare.push(bareTransactions(dataDir))
  }
  const ratios = ours.map((value, i) => value / (bare[i] ?? 1))
  table([
    ['changes a second', 'median', 'round 1', 'round 2', 'round 3'],
    ['PATCH with its entry, 16 at once', median(ours), ...ours],
    ['bare SQLite transactions', median(bare), ...bare],
    ['ratio', median(ratios), ...ratios],
  ])
  return true
}

function bareTransactions(dataDir: string): number {
  const db = new DatabaseSync(join(dataDir, 'bare.db'))
  db.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table if not exists t (id integer primary key, a text)',
  )
  const insert = db.prepare('insert into t (a) values (?)')
  const text = 'x'.repeat(300)
  const startedAt = performance.now()
  for (let i = 0; i < WRITES; i++) insert.run(text)
  const rate = (WRITES / (performance.now() - startedAt)) * 1000
  db.close()
  return rate
}
