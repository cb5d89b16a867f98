// A tenant makes its chain as long as it likes. SQLite answers on the thread that serves everyone, so what one query reads
// must not grow with the chain: an index leads to what it asks for, or it asks for a stretch.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CompiledQuery, createQueryId, type KyselyPlugin, type RootOperationNode } from 'kysely'
import { withDatabase } from '../../../test/support/database.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { newId } from '../../kit/ids.ts'
import type { Db } from '../db/tables.ts'
import { type ActivityFilter, findEntries, resumePoint } from './store.ts'

const LENGTH = 12_000
const WHOLE_CHAIN = /sqlite_autoindex_activity_1 \(chain=\?(?: AND seq[<>]\?)*\)|SCAN activity\b/
const { signal } = new AbortController()

describe('queries of a long chain', () => {
  let service: TestService
  let chain: string
  before(async () => {
    service = await startTestService({ engine: 'sqlite' })
    chain = (await service.createServer()).id
    await withDatabase(service, (db) =>
      db.updateTable('activity_heads').set({ seq: LENGTH }).where('chain', '=', chain).execute(),
    )
  })
  after(() => service.stop())

  /** How the engine goes about each of the queries that `work` makes. */
  const plansOf = (work: (db: Db) => Promise<unknown>) =>
    withDatabase(service, async (db) => {
      const nodes: RootOperationNode[] = []
      const spy: KyselyPlugin = {
        transformQuery({ node }) {
          nodes.push(node)
          return node
        },
        transformResult: async ({ result }) => result,
      }
      await work(db.withPlugin(spy))
      return Promise.all(
        nodes.map(async (node) => {
          const { sql, parameters } = db.getExecutor().compileQuery(node, createQueryId())
          const { rows } = await db.executeQuery<{ detail: string }>(
            CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
          )
          return rows.map(({ detail }) => detail).join('\n')
        }),
      )
    })
  const plansFor = (filter: Omit<ActivityFilter, 'chain'>) =>
    plansOf((db) => findEntries(db, { chain, ...filter }, null, 50, signal))

  for (const [name, filter] of Object.entries({
    'of one event': { event: 'backup.created' },
    'of one actor': { actor: 'tok_x' },
    'of one event in a span of time': { event: 'backup.created', since: 1, until: Date.now() + 1000 },
  }))
    test(`an index leads to the entries ${name}`, async () => {
      for (const plan of await plansFor(filter)) assert.doesNotMatch(plan, WHOLE_CHAIN)
    })

  for (const [name, filter] of Object.entries({
    'of one event and one actor': { event: 'backup.created', actor: 'tok_x' },
    'of a family of events': { family: 'backup.' },
    'with a text': { q: 'nowhere' },
  }))
    test(`entries ${name} are looked for in stretches`, async () => {
      const stretches = (await plansFor(filter)).filter((plan) => WHOLE_CHAIN.test(plan) || /activity_event/.test(plan))
      assert.equal(stretches.length, Math.ceil(LENGTH / 5000))
    })

  test('a stream that was last at an entry that is not there finds its place by an index', async () => {
    for (const plan of await plansOf((db) => resumePoint(db, chain, newId('act', Date.now() + 3600_000))))
      assert.doesNotMatch(plan, WHOLE_CHAIN)
  })
})
