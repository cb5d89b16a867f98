// What a tenant leaves in the database by asking: how much of it there may be, and that taking it away, or looking through
// it, holds up nobody.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CompiledQuery, type KyselyPlugin } from 'kysely'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { isFailure } from '../../contract/errors.ts'
import { LARGE_ANSWERS_MAX_BYTES } from '../../contract/fixed-limits.ts'
import { newId } from '../../kit/ids.ts'
import { createIdempotency, type KeyedRequest } from '../http/idempotency.ts'
import { listJobRows, NO_PROGRESS, purgeFinished } from '../jobs/store.ts'
import { openDatabase } from './database.ts'
import { DELETE_BATCH } from './delete-batches.ts'
import { migrate } from './migrate.ts'
import { MIGRATIONS } from './migrations/index.ts'
import type { Db, JobRow } from './tables.ts'

const DAY_MS = 24 * 3600_000

onBothEngines('what tenants leave in the database', (engine) => {
  /** `deleted` gets the number of rows of each statement that deletes. */
  async function withDb(work: (db: Db, deleted: number[]) => Promise<void>): Promise<void> {
    const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-growth-'))
    const opened = openDatabase({ dataDir, url: await freshDatabase(engine), onBroken: () => {} })
    await migrate(opened.db, engine, MIGRATIONS)
    const deleted: number[] = []
    const counting: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        if (result.rows.length === 0 && result.numAffectedRows !== undefined)
          deleted.push(Number(result.numAffectedRows))
        return result
      },
    }
    try {
      await work(opened.db.withPlugin(counting), deleted)
    } finally {
      await opened.close()
      await rm(dataDir, { recursive: true })
    }
  }

  const request = (key: string, tokenId = 'tok_a'): KeyedRequest => ({
    ...{ tokenId, credential: 'gk_a', key, method: 'POST', url: '/' },
    body: null,
  })

  test('Large answers that are kept for the keys of one token have 64 MiB in all; then a new key is rate_limited, and an old one is answered', () =>
    withDb(async (db) => {
      const clock = { at: Date.now(), now: () => clock.at }
      const ask = (idempotency: ReturnType<typeof createIdempotency>, key: string, bytes: number, tokenId?: string) =>
        idempotency.once(request(key, tokenId), (remember) =>
          db.transaction().execute(async (trx) => {
            await remember(trx, randomBytes((bytes * 3) / 4).toString('base64'))
            return 'made'
          }),
        )
      const isRefused = (error: unknown) =>
        isFailure(error, 'rate_limited') && error.headers?.['retry-after'] === '3600'
      // What is random is not made smaller.
      const half = (LARGE_ANSWERS_MAX_BYTES / 2) * 1.1
      const first = createIdempotency({ db, clock })
      for (let i = 0; i < 3; i++) await ask(first, `small-${i}`, 1000)
      await ask(first, 'one', half)
      await ask(first, 'two', half)
      await assert.rejects(ask(first, 'three', 1), isRefused)
      // Another process has it from the database.
      const second = createIdempotency({ db, clock })
      await assert.rejects(ask(second, 'three', 1), isRefused)
      assert.equal((await ask(second, 'one', half)).replayed, true)
      assert.equal((await ask(second, 'one', 1, 'tok_b')).replayed, false)
      clock.at += DAY_MS
      await second.purge()
      assert.equal((await ask(second, 'three', 1)).replayed, false)
    }))

  test('keys that are too old go a batch at a time', () =>
    withDb(async (db, deleted) => {
      const rows = Array.from({ length: 2 * DELETE_BATCH + 1 }, (_, i) => ({
        ...{
          token_id: `tok_${i % 3}`,
          key: `k${i}`,
          fingerprint: '',
          answer: 'x',
          created_at: i === 0 ? Date.now() : 0,
        },
      }))
      await db.insertInto('idempotency').values(rows).execute()
      deleted.length = 0
      await createIdempotency({ db, clock: Date }).purge()
      assert.deepEqual(deleted.slice(0, 2), [DELETE_BATCH, DELETE_BATCH])
      const left = await db.selectFrom('idempotency').select('key').execute()
      assert.deepEqual(left, [{ key: 'k0' }])
    }))

  const job = (id: string, finishedAt: number): JobRow => ({
    ...{
      id,
      server_id: 'srv_a',
      kind: 'pack',
      status: 'completed',
      input: '{}',
      progress: JSON.stringify(NO_PROGRESS),
    },
    ...{ result: null, error: null, attempts: 1, due_at: 0, lease_until: null, owner: null, cancel: 0 },
    ...{ created_at: 0, started_at: 0, finished_at: finishedAt, crashes: 0 },
  })

  test('jobs that ended long ago go a batch at a time', () =>
    withDb(async (db, deleted) => {
      const ids = Array.from({ length: 2 * DELETE_BATCH + 1 }, () => newId('job'))
      await db
        .insertInto('jobs')
        .values(ids.map((id, i) => job(id, i === 0 ? 10 : 1)))
        .execute()
      deleted.length = 0
      await purgeFinished(db, 5)
      assert.deepEqual(deleted.slice(0, 2), [DELETE_BATCH, DELETE_BATCH])
      assert.deepEqual(await db.selectFrom('jobs').select('id').execute(), [{ id: ids[0] }])
    }))

  if (engine === 'sqlite')
    test('an index leads to the jobs of one status, however many have another', () =>
      withDb(async (db) => {
        const asked: string[] = []
        const spy: KyselyPlugin = {
          transformQuery({ node, queryId }) {
            asked.push(db.getExecutor().compileQuery(node, queryId).sql)
            return node
          },
          transformResult: async ({ result }) => result,
        }
        for (const before of [null, 'job_x'])
          await listJobRows(db.withPlugin(spy), 'srv_a', { before, status: 'failed', limit: 50 })
        for (const sql of asked) {
          const parameters = [...sql.matchAll(/\?/g)].map(() => '1')
          const plan = await db.executeQuery<{ detail: string }>(
            CompiledQuery.raw(`explain query plan ${sql}`, parameters),
          )
          assert.match(plan.rows.map(({ detail }) => detail).join(), /jobs_by_status \(server_id=\? AND status=\?/)
        }
        assert.equal(asked.length, 2)
      }))
})
