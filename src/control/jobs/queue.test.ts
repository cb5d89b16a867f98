// The queue on a real database: nobody waits for somebody else's backlog, however long it is.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type KyselyPlugin, sql } from 'kysely'
import { pino } from 'pino'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { until } from '../../../test/support/until.ts'
import { newId } from '../../kit/ids.ts'
import { type Engine, openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations/index.ts'
import { createChanges } from '../db/row-changes.ts'
import { transact } from '../db/transact.ts'
import { SYSTEM } from '../http/actor.ts'
import { createJobs, type JobContext, type Jobs } from './runner.ts'

/** In one statement. */
const FILL_ROWS = 500

interface Bench {
  jobs: Jobs
  /** Kinds and servers in the order in which their jobs began. */
  begun: string[]
  begunIds: string[]
  /** The servers of the short ones in the order in which they had their turns: of two at once, either may begin first. */
  shortTurns: string[]
  /** Resolves once a job of this kind has begun for this server. */
  hasBegun(kind: string, serverId: string): Promise<void>
  /** How many rows the database has answered so far. */
  rowsRead(): number
  /** Does this before the next answer of the database. */
  beforeAnswer(work: () => Promise<void>): void
  enqueue(kind: string, serverIds: readonly string[]): Promise<void>
  /** The same for very many, without a statement for each. */
  fill(kind: string, serverIds: readonly string[]): Promise<void>
  /** How SQLite goes about finding the next job. */
  plan(): Promise<string>
}

async function withJobs(engine: Engine, work: (bench: Bench) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-queue-'))
  const opened = openDatabase({ dataDir, url: await freshDatabase(engine), onBroken: () => {} })
  await migrate(opened.db, engine, MIGRATIONS)
  let rows = 0
  let meanwhile: (() => Promise<void>) | undefined
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      rows += result.rows.length
      const work = meanwhile
      meanwhile = undefined
      await work?.()
      return result
    },
  }
  const db = opened.db.withPlugin(counting)
  const jobs = createJobs({
    db,
    changes: createChanges(),
    clock: { now: Date.now },
    log: pino({ level: 'silent' }),
  })
  const begun: string[] = []
  const begunIds: string[] = []
  const waiting = new Map<string, () => void>()
  const run = async ({ serverId, jobId }: JobContext<unknown>, kind: string) => {
    begun.push(`${kind} ${serverId}`)
    begunIds.push(jobId)
    waiting.get(`${kind} ${serverId}`)?.()
  }
  // Two that last until they are told to stop, and one that is done at once.
  for (const kind of ['long', 'other'])
    jobs.register(kind, {
      cancellable: true,
      atOnce: 2,
      async run(job) {
        await run(job, kind)
        await once(job.signal, 'abort')
        throw job.signal.reason
      },
    })
  const shortTurns: string[] = []
  jobs.register('short', {
    cancellable: true,
    atOnce: 2,
    async onBegin(_trx, { serverId }) {
      shortTurns.push(serverId)
    },
    run: (job) => run(job, 'short'),
  })
  try {
    await work({
      jobs,
      begun,
      begunIds,
      shortTurns,
      async hasBegun(kind, serverId) {
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.set(`${kind} ${serverId}`, resolve)
        if (!begun.includes(`${kind} ${serverId}`)) await promise
      },
      rowsRead: () => rows,
      beforeAnswer(work) {
        meanwhile = work
      },
      enqueue: (kind, serverIds) =>
        transact(db, {}, async (trx) => {
          for (const serverId of serverIds) await jobs.enqueue(trx, SYSTEM, { kind, serverId, input: {} })
        }),
      fill: (kind, [first = '', ...others]) =>
        transact(db, {}, async (trx) => {
          const row = await jobs.enqueue(trx, SYSTEM, { kind, serverId: first, input: {} })
          for (let from = 0; from < others.length; from += FILL_ROWS) {
            const some = others.slice(from, from + FILL_ROWS)
            const rows = some.map((serverId) => ({ ...row, id: newId('job'), server_id: serverId }))
            await trx.insertInto('jobs').values(rows).execute()
          }
        }),
      async plan() {
        const next = sql<{ detail: string }>`explain query plan select * from jobs
          where status = 'queued' and kind = 'long' and server_id > 'srv_a' and due_at <= 1 order by server_id, id limit 1`
        return (await next.execute(db)).rows.map(({ detail }) => detail).join('; ')
      },
    })
  } finally {
    await jobs.stop()
    await opened.close()
    await rm(dataDir, { recursive: true })
  }
}

const servers = (count: number, prefix = 'srv_a') =>
  Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(5, '0')}`)

onBothEngines('No queued job delays one of another kind or another server.', (engine) => {
  const giveUp = { timeout: 60_000 }

  test('no number of queued jobs of one kind delays another kind', giveUp, () =>
    withJobs(engine, async ({ jobs, enqueue, hasBegun, begun }) => {
      await enqueue('long', servers(230))
      await enqueue('other', ['srv_z'])
      await jobs.start()
      await hasBegun('other', 'srv_z')
      const long = () => begun.filter((entry) => entry.startsWith('long')).length
      await until(async () => long() >= 2)
      assert.equal(long(), 2, 'the slots of a kind are its own')
    }),
  )

  test('a job that comes while the queue is looked at begins at once, not when leases are renewed', giveUp, (t) =>
    withJobs(engine, async ({ jobs, enqueue, hasBegun, beforeAnswer }) => {
      t.mock.timers.enable({ apis: ['setInterval'] })
      await jobs.start()
      beforeAnswer(async () => {
        await delay(2)
        const enqueued = enqueue('short', ['srv_z'])
        // SQLite has one connection, which the answer still holds: it is the next to have it.
        if (engine === 'postgres') await enqueued
      })
      await hasBegun('short', 'srv_z')
    }),
  )

  test('no number of queued jobs of one kind or of one server delays another kind or another server', giveUp, () =>
    withJobs(engine, async ({ jobs, enqueue, hasBegun, begun }) => {
      await enqueue(
        'short',
        Array.from({ length: 230 }, () => 'srv_a'),
      )
      await enqueue('short', ['srv_b'])
      await enqueue(
        'short',
        Array.from({ length: 230 }, () => 'srv_c'),
      )
      await enqueue('short', ['srv_d'])
      await jobs.start()
      await hasBegun('short', 'srv_b')
      await hasBegun('short', 'srv_d')
      assert.ok(begun.length < 20, `${begun.length} began before them`)
    }),
  )

  test('a kind whose jobs end as soon as they begin delays no other', giveUp, () =>
    withJobs(engine, async ({ jobs, enqueue, hasBegun, begun }) => {
      await enqueue('short', servers(230))
      await enqueue('other', ['srv_z'])
      await jobs.start()
      await hasBegun('other', 'srv_z')
      assert.ok(begun.length < 20, `${begun.length} began before it`)
    }),
  )

  test('every server has its turn, and each of its jobs in the order in which they were asked for', giveUp, () =>
    withJobs(engine, async ({ jobs, enqueue, hasBegun, shortTurns }) => {
      const all = servers(230)
      await enqueue('short', [...all, ...all])
      await enqueue('short', ['srv_z'])
      await jobs.start()
      await hasBegun('short', 'srv_z')
      const first = shortTurns.slice(0, shortTurns.indexOf('srv_z') + 1)
      assert.deepEqual(first, [...all, 'srv_z'], 'nobody had a second turn before everyone had a first')
    }),
  )

  test('The jobs of one kind for one server run one at a time, oldest first.', giveUp, () =>
    withJobs(engine, async ({ jobs, enqueue, hasBegun, begun, begunIds }) => {
      await enqueue('long', ['srv_a', 'srv_a', 'srv_b'])
      await enqueue(
        'short',
        Array.from({ length: 20 }, () => 'srv_a'),
      )
      await enqueue('short', ['srv_z'])
      await jobs.start()
      // The long ones never end: the second of the same server does not begin, though a slot is free for a while.
      await hasBegun('long', 'srv_b')
      await until(async () => begun.filter((entry) => entry === 'short srv_a').length === 20)
      assert.deepEqual(begun.filter((entry) => entry.startsWith('long')).sort(), ['long srv_a', 'long srv_b'])
      const shorts = begunIds.filter((_, index) => begun[index] === 'short srv_a')
      assert.deepEqual(shorts, shorts.toSorted())
    }),
  )

  test('what is read does not grow with the queue', giveUp, () =>
    withJobs(engine, async ({ jobs, enqueue, fill, hasBegun, rowsRead, plan }) => {
      await fill('long', servers(10_000))
      const before = rowsRead()
      await jobs.start()
      await hasBegun('long', 'srv_a00001')
      await enqueue('other', ['srv_z'])
      await hasBegun('other', 'srv_z')
      assert.ok(rowsRead() - before < 50, `${rowsRead() - before} rows were read to begin three jobs`)
      if (engine === 'sqlite') assert.match(await plan(), /^SEARCH jobs USING INDEX jobs_queue [^;]*$/)
    }),
  )
})
