// How long sessions last, by a clock that the test sets, and what is left in the database.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { freshDatabase, onBothEngines } from '../../../test/support/engines.ts'
import { SESSION_IDLE_MS, SESSION_MAX_MS, SESSIONS_MAX, SIGN_IN_LINKS_MAX } from '../../contract/fixed-limits.ts'
import { createActivity } from '../activity/service.ts'
import { type Engine, openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations/index.ts'
import { createChanges } from '../db/row-changes.ts'
import { transact } from '../db/transact.ts'
import { type Actor, SYSTEM } from '../http/actor.ts'
import { createCursors } from '../http/paging.ts'
import { createStreams } from '../http/streams/open-streams.ts'
import { createInvitations } from './invitations.ts'
import { createTokens } from './service.ts'
import { createSessions, type StartedSession } from './sessions.ts'
import { createSignIn } from './sign-in.ts'

const DAY_MS = 24 * 3600_000

const credentialOf = ({ value, proof }: StartedSession) => ({ cookies: [value], proof })

async function prepared(t: TestContext, engine: Engine) {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-sessions-'))
  const { db, close } = openDatabase({ dataDir, url: await freshDatabase(engine), onBroken: () => {} })
  t.after(async () => {
    await close()
    await rm(dataDir, { recursive: true })
  })
  await migrate(db, engine, MIGRATIONS)
  let now = Date.now()
  const clock = { now: () => now }
  const cursors = createCursors(Buffer.alloc(32))
  const activity = createActivity({ db, key: Buffer.alloc(32), cursors, changes: createChanges(), clock })
  const streams = createStreams({ clock })
  const tokens = createTokens({ db, activity, streams, cursors, clock, onRevoked: () => {} })
  const sessions = createSessions({ db, activity, tokens, streams, cursors, clock })
  const invitations = createInvitations({ db, activity, cursors, clock })
  const signIn = createSignIn({ db, sessions, invitations, clock })
  const { id } = await tokens.create(SYSTEM, { name: 'a', scopes: ['*'], servers: '*' })
  const actor: Actor = { ...SYSTEM, type: 'token', id, name: 'a' }
  const start = () => transact(db, {}, (trx) => sessions.start(trx, actor, 'token', undefined))
  /** As after a restart: nothing is cached. */
  const afresh = () => createSessions({ db, activity, tokens, streams, cursors, clock })
  const count = async (table: 'sessions' | 'sign_in_links') => (await db.selectFrom(table).selectAll().execute()).length
  return { db, tokens, sessions, signIn, actor, start, afresh, count, pass: (ms: number) => (now += ms) }
}

onBothEngines('lifetimes of sessions', (engine) => {
  test('A session ends 30 days after its last use, and 180 days after it began.', async (t) => {
    const { sessions, actor, start, afresh, pass, count } = await prepared(t, engine)
    const [used, idle] = [await start(), await start()]
    for (let days = 0; days < 175; days += 25) {
      assert.equal((await sessions.identify(credentialOf(used)))?.id, actor.id, `day ${days}`)
      await sessions.flushUse()
      pass(25 * DAY_MS)
    }
    assert.equal(await afresh().identify(credentialOf(idle)), undefined)
    assert.equal((await afresh().identify(credentialOf(used)))?.session?.endsAt, used.endsAt)
    assert.equal((await sessions.identify(credentialOf(used)))?.id, actor.id)
    pass(5 * DAY_MS - 1)
    assert.equal((await sessions.identify(credentialOf(used)))?.id, actor.id)
    pass(1)
    assert.equal(await sessions.identify(credentialOf(used)), undefined)
    assert.equal(await afresh().identify(credentialOf(used)), undefined)
    await sessions.purge()
    assert.equal(await count('sessions'), 0)
    assert.deepEqual([SESSION_IDLE_MS, SESSION_MAX_MS], [30 * DAY_MS, 180 * DAY_MS])
  })

  test('sessions and links of one token do not grow without bound', async (t) => {
    const { db, sessions, signIn, actor, start, count, pass } = await prepared(t, engine)
    const oldest = await start()
    assert.ok(await sessions.identify(credentialOf(oldest)))
    const filler = Array.from({ length: SESSIONS_MAX - 1 }, (_, index) => ({
      id: `ses_x${index}`,
      hash: `x${index}`,
      proof_hash: `x${index}`,
      token_id: actor.id,
      created_at: 0,
      ends_at: 9e15,
      last_used_at: 0,
      user_agent: null,
      ip: null,
    }))
    await db.insertInto('sessions').values(filler).execute()
    const newest = await start()
    assert.equal(await count('sessions'), SESSIONS_MAX)
    assert.ok(newest.id > oldest.id)
    assert.equal(await sessions.identify(credentialOf(oldest)), undefined)
    for (let index = 0; index < SIGN_IN_LINKS_MAX + 3; index++) {
      pass(1)
      await signIn.createLink(actor, 'http://localhost')
    }
    assert.equal(await count('sign_in_links'), SIGN_IN_LINKS_MAX)
  })

  test('a session of a revoked token is dead at once, also where it was cached, and its row goes', async (t) => {
    const { tokens, sessions, actor, start, count } = await prepared(t, engine)
    const started = await start()
    assert.ok(await sessions.identify(credentialOf(started)))
    await tokens.revoke(SYSTEM, actor.id)
    assert.equal(await sessions.identify(credentialOf(started)), undefined)
    await sessions.purge()
    assert.equal(await count('sessions'), 0)
  })
})
