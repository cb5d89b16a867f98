// The runner on a real database, where a moment that the front door cannot time has to be met.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { type Engine, openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations/index.ts'
import { createChanges } from '../db/row-changes.ts'
import { transact } from '../db/transact.ts'
import { SYSTEM } from '../http/actor.ts'
import { createJobs } from './runner.ts'
import { claimJob, findJob } from './store.ts'

async function openJobs(engine: Engine) {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-jobs-'))
  const { db, close } = openDatabase({ dataDir, url: await freshDatabase(engine), onBroken: () => {} })
  await migrate(db, engine, MIGRATIONS)
  return {
    db,
    create: () =>
      createJobs({ db, changes: createChanges(), clock: { now: Date.now }, log: pino({ level: 'silent' }) }),
    async [Symbol.asyncDispose]() {
      await close()
      await rm(dataDir, { recursive: true })
    },
  }
}

onBothEngines('jobs', (engine) => {
  test('one that was under way at a crash is taken up again at the next start, at once', async () => {
    await using opened = await openJobs(engine)
    const { db } = opened
    const jobs = opened.create()
    jobs.register('work', {
      cancellable: true,
      atOnce: 1,
      run: ({ complete }) => transact(db, {}, (trx) => complete(trx, {})),
    })
    const { id } = await transact(db, {}, (trx) =>
      jobs.enqueue(trx, SYSTEM, { kind: 'work', serverId: 'srv_a', input: {} }),
    )
    // As a process leaves it that is killed a moment after it has renewed its lease.
    await claimJob(db, id, 'the dead one', Date.now(), 30_000)
    await jobs.start()
    await jobs.whenEnded(id, 10_000)
    assert.equal((await findJob(db, 'srv_a', id))?.status, 'completed')
    await jobs.stop()
  })

  test('a graceful stop does not count as a start that failed, however often it comes', async () => {
    await using opened = await openJobs(engine)
    const { db } = opened
    let begun = Promise.withResolvers<void>()
    const create = () => {
      const jobs = opened.create()
      jobs.register('work', {
        cancellable: true,
        atOnce: 1,
        async run({ signal }) {
          begun.resolve()
          await once(signal, 'abort')
          throw signal.reason
        },
      })
      return jobs
    }
    const { id } = await transact(db, {}, (trx) =>
      create().enqueue(trx, SYSTEM, { kind: 'work', serverId: 'srv_a', input: {} }),
    )
    for (let i = 0; i < 5; i++) {
      const jobs = create()
      begun = Promise.withResolvers()
      await jobs.start()
      await begun.promise
      await jobs.stop()
    }
    const row = await findJob(db, 'srv_a', id)
    assert.deepEqual([row?.status, row?.crashes, row?.attempts], ['queued', 0, 5])
  })

  test('jobs on their last start run one at a time, and keep no others waiting', async () => {
    await using opened = await openJobs(engine)
    const { db } = opened
    const jobs = opened.create()
    const running = new Set<string>()
    const most: string[][] = []
    const mayEnd = Promise.withResolvers<void>()
    const twoBegun = Promise.withResolvers<void>()
    jobs.register('work', {
      cancellable: true,
      atOnce: 8,
      async run({ serverId }) {
        running.add(serverId)
        most.push([...running].sort())
        if (running.size === 2) twoBegun.resolve()
        await mayEnd.promise
        running.delete(serverId)
      },
    })
    const enqueue = (serverId: string) =>
      transact(db, {}, (trx) => jobs.enqueue(trx, SYSTEM, { kind: 'work', serverId, input: {} }))
    const suspects = [await enqueue('srv_a'), await enqueue('srv_b')]
    for (const { id } of suspects) {
      await claimJob(db, id, 'the dead one', Date.now(), 30_000)
      await db.updateTable('jobs').set({ crashes: 1 }).where('id', '=', id).execute()
    }
    await enqueue('srv_fresh')
    await jobs.start()
    // Of two at once, either may begin first.
    await twoBegun.promise
    assert.deepEqual(most.at(-1), ['srv_a', 'srv_fresh'])
    mayEnd.resolve()
    for (const { id } of suspects) await jobs.whenEnded(id, 10_000)
    assert.equal((await findJob(db, 'srv_b', suspects[1]?.id ?? ''))?.status, 'completed')
    assert.ok(most.every((names) => !(names.includes('srv_a') && names.includes('srv_b'))))
    await jobs.stop()
  })

  test('work that is never given up is put off when the process went down with it three times', async () => {
    await using opened = await openJobs(engine)
    const { db } = opened
    const jobs = opened.create()
    let runs = 0
    jobs.register('work', {
      cancellable: false,
      isNeverGivenUp: true,
      atOnce: 1,
      async run() {
        runs++
      },
    })
    const { id } = await transact(db, {}, (trx) =>
      jobs.enqueue(trx, SYSTEM, { kind: 'work', serverId: 'srv_a', input: {} }),
    )
    await claimJob(db, id, 'the dead one', Date.now(), 30_000)
    await db.updateTable('jobs').set({ crashes: 2 }).where('id', '=', id).execute()
    await jobs.start()
    const row = await findJob(db, 'srv_a', id)
    assert.equal(row?.status, 'queued')
    assert.equal(JSON.parse(row?.error ?? '{}').code, 'job_crashed')
    assert.ok((row?.due_at ?? 0) > Date.now() + 1_800_000)
    await jobs.stop()
    assert.equal(runs, 0)
  })

  test('work that settles what it has begun runs once more after three crashes, only to settle it', async () => {
    for (const [how, settled] of [
      ['back', 'failed'],
      ['forward', 'completed'],
    ] as const) {
      await using opened = await openJobs(engine)
      const { db } = opened
      const jobs = opened.create()
      const reasons: unknown[] = []
      const ends: string[] = []
      jobs.register('work', {
        cancellable: true,
        settlesCancel: true,
        atOnce: 1,
        async run({ signal }) {
          reasons.push(signal.reason?.code)
          if (how === 'back') throw signal.reason
        },
        async onEnd(_trx, _facts, { status }) {
          ends.push(status)
        },
      })
      const { id } = await transact(db, {}, (trx) =>
        jobs.enqueue(trx, SYSTEM, { kind: 'work', serverId: 'srv_a', input: {} }),
      )
      await claimJob(db, id, 'the dead one', Date.now(), 30_000)
      await db.updateTable('jobs').set({ crashes: 2 }).where('id', '=', id).execute()
      await jobs.start()
      await jobs.whenEnded(id, 10_000)
      const row = await findJob(db, 'srv_a', id)
      assert.equal(row?.status, settled)
      assert.deepEqual(reasons, ['job_crashed'])
      assert.deepEqual(ends, how === 'back' ? ['failed'] : [])
      if (how === 'back') assert.equal(JSON.parse(row?.error ?? '{}').code, 'job_crashed')
      await jobs.stop()
    }
  })

  test('one that began between being read and being cancelled is told to stop, not written off', async () => {
    await using opened = await openJobs(engine)
    const { db } = opened
    const jobs = opened.create()
    const began = Promise.withResolvers<void>()
    let stopped = false
    let ends = 0
    jobs.register('work', {
      cancellable: true,
      atOnce: 1,
      async run({ signal }) {
        began.resolve()
        await once(signal, 'abort')
        stopped = true
        throw signal.reason
      },
      async onEnd() {
        ends++
      },
    })
    const asRead = await transact(db, {}, (trx) =>
      jobs.enqueue(trx, SYSTEM, { kind: 'work', serverId: 'srv_a', input: {} }),
    )
    await jobs.start()
    await began.promise
    assert.equal(asRead.status, 'queued')
    await transact(db, {}, (trx) => jobs.cancel(trx, asRead))
    await jobs.whenEnded(asRead.id, 10_000)
    assert.equal((await findJob(db, 'srv_a', asRead.id))?.status, 'cancelled')
    assert.deepEqual([stopped, ends], [true, 1])
    await jobs.stop()
  })
})
