// Lock, then read, then decide. What a transaction reads of a server without locking it may be out of date before it
// decides, on PostgreSQL; so nothing but these places may ask for the rows of servers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Source, sourcesUnder } from './sources.ts'

/** Reads of the servers table, each with why it needs no lock. */
const READERS: Record<string, string> = {
  'src/control/servers/store.ts':
    'called with a transaction by nobody: `access.ts` lets only reads outside of one through',
  'src/control/activity/routes.ts': 'only whether there is such a server, outside of any transaction',
  'src/control/activity/store.ts':
    'only whether the server is still there, for an entry of what has happened to it already',
  'src/control/activity/verify.ts': 'only which chains should be there, outside of any transaction',
  'src/control/backups/store.ts':
    'only what is said of unfinished restores, to compare it with the disk; what differs is locked before it is changed',
  'src/control/templates/store.ts':
    'only how many use a template, which is locked: whoever gives it to a server locks it first',
  'src/control/tokens/store.ts': 'only which ids exist, for a token that reaches nothing where they do not',
}

const isTest = (path: string) => /\.(test|testing)\.ts$/.test(path)
const readsServers = ({ text }: Source) => /selectFrom\(\s*'servers'/.test(text)
/** A store function that reads a server, given a transaction. */
const unlockedIn = ({ text }: Source) =>
  [...text.matchAll(/\b(?:find|require\w*)Server\w*\(\s*trx\b/g)].map(([call]) => call)

test('Lock, then read, then decide: a transaction that changes anything about a server first locks its row (lockReadyServer), which returns the row as of then.', () => {
  const sources = sourcesUnder('src/control').filter(({ path }) => !isTest(path))
  assert.ok(sources.length > 50)
  const readers = sources.filter(readsServers).map(({ path }) => path)
  assert.deepEqual(readers.sort(), Object.keys(READERS).sort())
  assert.deepEqual(
    sources.flatMap((source) => unlockedIn(source).map((call) => `${source.path}: ${call}`)),
    [],
  )
})

test('the test sees a read in a transaction', () => {
  const wrong = "const server = await requireReadyServer(trx, actor, serverId)\nawait trx.selectFrom('servers')"
  assert.equal(unlockedIn({ path: 'x.ts', text: wrong }).length, 1)
  assert.ok(readsServers({ path: 'x.ts', text: wrong }))
  assert.deepEqual(unlockedIn({ path: 'x.ts', text: 'await lockReadyServer(trx, actor, serverId)' }), [])
})
