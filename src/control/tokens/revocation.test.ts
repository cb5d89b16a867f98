// Revocations on a real database whose answer to a commit is lost, which the front door cannot time.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { fail } from '../../contract/errors.ts'
import { createActivity } from '../activity/service.ts'
import { type Engine, openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations/index.ts'
import { createChanges } from '../db/row-changes.ts'
import type { Db } from '../db/tables.ts'
import { SYSTEM } from '../http/actor.ts'
import { createCursors } from '../http/paging.ts'
import { createStreams } from '../http/streams/open-streams.ts'
import { createTokens } from './service.ts'

async function prepared(t: TestContext, engine: Engine) {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-tokens-'))
  const opened = openDatabase({ dataDir, url: await freshDatabase(engine), onBroken: () => {} })
  t.after(async () => {
    await opened.close()
    await rm(dataDir, { recursive: true })
  })
  await migrate(opened.db, engine, MIGRATIONS)
  const lost = { commit: false, answer: false }
  const db = new Proxy(opened.db, {
    get(target, name) {
      if (name !== 'transaction') {
        const value = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      }
      const execute = async (work: (trx: never) => Promise<unknown>) => {
        if (lost.commit) throw fail('not_ready', 'The database cannot be reached.')
        const answer = await target.transaction().execute(work as never)
        if (lost.answer) throw fail('not_ready', 'The database cannot be reached.')
        return answer
      }
      return () => ({ execute })
    },
  }) as Db
  const key = Buffer.alloc(32)
  const clock = { now: Date.now }
  const cursors = createCursors(key)
  const activity = createActivity({ db, key, cursors, changes: createChanges(), clock })
  const revoked: string[] = []
  const streams = createStreams({ clock })
  const tokens = createTokens({ db, activity, streams, cursors, clock, onRevoked: (id) => void revoked.push(id) })
  const { id, token } = await tokens.create(SYSTEM, { name: 'a', scopes: ['*'], servers: '*' })
  assert.equal((await tokens.identify(token))?.id, id)
  return { tokens, id, token, revoked, lost }
}

onBothEngines('revocation', (engine) => {
  test('a token whose revocation was committed without an answer is dead at once', async (t) => {
    const { tokens, id, token, revoked, lost } = await prepared(t, engine)
    lost.answer = true
    await assert.rejects(tokens.revoke(SYSTEM, id), { code: 'not_ready' })
    lost.answer = false
    assert.equal(await tokens.identify(token), undefined)
    assert.deepEqual(revoked, [id], 'what lies beyond this process ends too')
  })

  test('a retry of such a revocation ends what lies beyond this process', async (t) => {
    const { tokens, id, revoked, lost } = await prepared(t, engine)
    lost.answer = true
    await assert.rejects(tokens.revoke(SYSTEM, id), { code: 'not_ready' })
    lost.answer = false
    await assert.rejects(tokens.revoke(SYSTEM, id), { code: 'not_found' })
    assert.deepEqual(revoked, [id])
  })

  test('a token whose revocation did not happen goes on working, and can be revoked', async (t) => {
    const { tokens, id, token, revoked, lost } = await prepared(t, engine)
    lost.commit = true
    await assert.rejects(tokens.revoke(SYSTEM, id), { code: 'not_ready' })
    lost.commit = false
    assert.equal((await tokens.identify(token))?.id, id)
    assert.deepEqual(revoked, [])
    await tokens.revoke(SYSTEM, id)
    assert.equal(await tokens.identify(token), undefined)
    assert.deepEqual(revoked, [id])
  })
})
