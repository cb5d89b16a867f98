// The runner on a real database, where a moment that the front door cannot time has to be met.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { createChanges } from '../db/changes.ts'
import { openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations/index.ts'
import { transact } from '../db/transact.ts'
import { SYSTEM } from '../http/actor.ts'
import { createJobs } from './runner.ts'
import { findJob } from './store.ts'

onBothEngines('jobs', (engine) => {
  test('one that began between being read and being cancelled is told to stop, not written off', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-jobs-'))
    const { db, close } = openDatabase({ dataDir, url: await freshDatabase(engine), onBroken: () => {} })
    await migrate(db, engine, MIGRATIONS)
    const changes = createChanges()
    const jobs = createJobs({ db, changes, clock: { now: Date.now }, log: pino({ level: 'silent' }) })
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
    await close()
    await rm(dataDir, { recursive: true })
  })
})
