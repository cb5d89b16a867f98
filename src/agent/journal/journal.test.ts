import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { StartFault } from '../../kit/start-fault.ts'
import { makeTree } from '../files/trees.testing.ts'
import { createJournal, type Journal } from './journal.ts'

const fact = (name: string) => ({ serverId: 'srv_test', kind: 'file.written', cause: null, properties: { name } })
const intent = (name: string) => ({
  serverId: 'srv_test',
  kind: 'file.moved',
  cause: null,
  requestId: null,
  idempotency: null,
  probe: { op: 'moved', name },
})

function open(t: TestContext, folder: string, now: () => number = Date.now): Journal {
  const journal = createJournal({ folder, now, onUnexpected: assert.ifError })
  t.after(() => journal.close())
  return journal
}

/** What it finds to report. */
function openDamaged(t: TestContext, folder: string): { journal: Journal; faults: unknown[] } {
  const faults: unknown[] = []
  const journal = createJournal({ folder, now: Date.now, onUnexpected: (error) => faults.push(error) })
  t.after(() => journal.close())
  return { journal, faults }
}

const read = async (journal: Journal, more = {}) =>
  (await journal.read({ limit: 1000, waitMs: 0, ...more })).map(({ properties }) => properties.name)

test('forgetting takes what was read and nothing else, also when facts arrive meanwhile', async (t) => {
  // The clock stands still, or goes backwards: neither says which fact was read.
  let now = 2000
  const journal = open(t, makeTree(t), () => now)
  await journal.add(fact('first'))
  const seen = await journal.read({ limit: 100, waitMs: 0 })
  now = 1000
  await journal.add(fact('arrived between reading and forgetting'))
  await journal.forget({ ids: seen.map(({ id }) => id) })
  assert.deepEqual(await read(journal), ['arrived between reading and forgetting'])
})

test('facts and unsettled intents outlive the process, what was dropped or forgotten does not', async (t) => {
  const folder = makeTree(t)
  const before = open(t, folder)
  await before.add(fact('kept'))
  await before.add(fact('forgotten'))
  const pending = before.begin(intent('pending'))
  const done = before.begin(intent('done'))
  const dropped = before.begin(intent('dropped'))
  await Promise.all([pending.durable, done.durable, dropped.durable])
  before.complete(done.intent, { properties: { name: 'done' } })
  before.drop(dropped.intent)
  const forgotten = (await before.read({ limit: 10, waitMs: 0 })).find(
    ({ properties }) => properties.name === 'forgotten',
  )
  await before.forget({ ids: [forgotten?.id ?? ''] })

  for (let start = 0; start < 3; start++) {
    const after = open(t, folder)
    assert.deepEqual(await read(after), ['kept', 'done'])
    assert.deepEqual(
      after.unsettled().map(({ id }) => id),
      [pending.intent.id],
    )
  }
})

test('a line that a crash tore, and rot in the middle, take only themselves', async (t) => {
  const folder = makeTree(t)
  const before = open(t, folder)
  for (const name of ['one', 'two', 'three']) await before.add(fact(name))
  for (const file of ['0.log', '1.log']) {
    const bytes = readFileSync(join(folder, file), 'latin1')
    writeFileSync(join(folder, file), bytes.replace('"two"', '"tvo"'), 'latin1')
    appendFileSync(join(folder, file), '12345678 7 {"fact":{"id":"act_torn')
  }
  const { journal, faults } = openDamaged(t, folder)
  assert.deepEqual(await read(journal), ['one', 'three'])
  assert.match(String(faults), /1 lines that cannot be read/)
  assert.deepEqual(await read(open(t, folder)), ['one', 'three'])
})

test('a page of what a generation begins with that never reached the disk is missed by nobody', async (t) => {
  const folder = makeTree(t)
  const first = open(t, folder)
  for (const name of ['one', 'two', 'three']) await first.add(fact(name))
  first.close()
  // The next start begins the second generation, in the other file; the power fails before that is synced.
  open(t, folder).close()
  const newer = join(folder, '0.log')
  const lines = readFileSync(newer, 'latin1').split('\n')
  const lost = lines.map((line) => (line.includes('"two"') ? '\0'.repeat(line.length) : line))
  assert.notDeepEqual(lost, lines)
  writeFileSync(newer, lost.join('\n'), 'latin1')
  const { journal: after } = openDamaged(t, folder)
  assert.deepEqual((await read(after)).sort(), ['one', 'three', 'two'])
  // The whole generation before is not the one that is overwritten.
  assert.match(readFileSync(join(folder, '1.log'), 'latin1'), /"two"/)
  await after.add(fact('four'))
  after.close()
  assert.deepEqual((await read(open(t, folder))).sort(), ['four', 'one', 'three', 'two'])
})

const DAMAGES: Record<string, { harm: (file: string) => void; left: string[] }> = {
  'a file that was emptied': { harm: (file) => writeFileSync(file, ''), left: [] },
  'a file that was cut short': { harm: (file) => truncateSync(file, 50), left: [] },
  'a file that is missing': { harm: (file) => rmSync(file), left: [] },
  // Nothing that came after it goes with it.
  'the end of a beginning': {
    harm: (file) => writeFileSync(file, readFileSync(file, 'latin1').replace('"begunWith"', '"begunWiht"'), 'latin1'),
    left: ['one', 'two'],
  },
}

for (const [name, { harm, left }] of Object.entries(DAMAGES)) {
  test(`damage is reported, and what is damaged is kept: ${name}`, async (t) => {
    const folder = makeTree(t)
    const before = open(t, folder)
    await before.add(fact('one'))
    await before.add(fact('two'))
    before.close()
    harm(join(folder, '1.log'))
    const isThere = existsSync(join(folder, '1.log'))
    const { journal, faults } = openDamaged(t, folder)
    assert.deepEqual(await read(journal), left)
    assert.equal(faults.length, 1, String(faults))
    assert.equal(readdirSync(folder).filter((file) => file.startsWith('1.log.damaged-')).length, isThere ? 1 : 0)
    journal.close()
    // Said once: the next start finds it whole.
    assert.deepEqual(await read(open(t, folder)), left)
  })
}

test('a journal that cannot be opened keeps the service from starting, with a sentence', (t) => {
  const folder = makeTree(t, { '0.log/': '' })
  const isSentence = (error: unknown) =>
    error instanceof StartFault && error.message === `The journal in ${folder} cannot be used (EISDIR).`
  assert.throws(() => open(t, folder), isSentence)
})

test('it takes no more space than it was given, however much passes through it', async (t) => {
  const folder = makeTree(t)
  const journal = open(t, folder)
  const size = () => readFileSync(join(folder, '0.log')).length + readFileSync(join(folder, '1.log')).length
  const given = size()
  await journal.add(fact('the oldest'))
  for (let index = 0; index < 3000; index++) {
    const { intent: begun } = journal.begin(intent('x'.repeat(300)))
    journal.complete(begun, { properties: { name: `${index}` } })
    await journal.forget({ ids: [begun.id] })
  }
  assert.equal(size(), given)
  assert.deepEqual(await read(open(t, folder)), ['the oldest'])
})

test('more than it was given makes it grow, and nothing is lost', async (t) => {
  const folder = makeTree(t)
  const journal = open(t, folder)
  const names = Array.from({ length: 400 }, (_, index) => `${index} ${'x'.repeat(4000)}`)
  await Promise.all(names.map((name) => journal.add(fact(name))))
  assert.equal((await read(open(t, folder))).join() === names.join(), true)
})

test('a fact that is told twice under one id is one fact', async (t) => {
  const folder = makeTree(t)
  const journal = open(t, folder)
  const id = 'act_00000000000000000000000001'
  await journal.add({ ...fact('once'), id })
  await journal.add({ ...fact('once'), id })
  assert.deepEqual(await read(journal), ['once'])
  assert.deepEqual(await read(open(t, folder)), ['once'])
})

test('a reader waits for the next fact, is not kept from it by those it leaves out, and is woken at the end', async (t) => {
  const journal = open(t, makeTree(t))
  await journal.add(fact('resting'))
  const [resting] = await journal.read({ limit: 10, waitMs: 0 })
  const next = read(journal, { waitMs: 60_000, except: [resting?.id] })
  await journal.add(fact('next'))
  assert.deepEqual(await next, ['next'])
  await journal.forget({ ids: (await journal.read({ limit: 10, waitMs: 0 })).map(({ id }) => id) })
  const last = read(journal, { waitMs: 60_000 })
  journal.stop()
  assert.deepEqual(await last, [])
})

test('what a request has changed is left to whoever asked for it first', async (t) => {
  const folder = makeTree(t)
  const journal = open(t, folder)
  const asked = { ...intent('asked'), requestId: 'req_1' }
  const { intent: begun } = journal.begin(asked)
  journal.complete(begun, { properties: { name: 'asked' } })
  assert.deepEqual(await read(journal), [])
  assert.equal((await journal.find({ serverId: 'srv_test', requestId: 'req_1' }))?.id, begun.id)
  assert.equal(await journal.find({ serverId: 'srv_other', requestId: 'req_1' }), null)
  assert.deepEqual(await read(journal, { waitMs: 60_000 }), ['asked'], 'nobody came for it')
  await journal.forget({ ids: [begun.id] })
  assert.equal(await journal.find({ serverId: 'srv_test', requestId: 'req_1' }), null)
})

test('facts of the time before the journal are taken over, one that cannot be read aside', async (t) => {
  const [folder, oldFolder] = [makeTree(t), makeTree(t)]
  mkdirSync(oldFolder, { recursive: true })
  const id = 'act_00000000000000000000000002'
  writeFileSync(join(oldFolder, id), JSON.stringify({ ...fact('old'), id, at: 1 }))
  writeFileSync(join(oldFolder, 'act_00000000000000000000000003'), '{"half')
  const faults: unknown[] = []
  const journal = createJournal({ folder, oldFolder, now: Date.now, onUnexpected: (error) => faults.push(error) })
  t.after(() => journal.close())
  assert.deepEqual(await read(journal), ['old'])
  assert.equal(faults.length, 1)
  await journal.add(fact('new'))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(existsSync(join(oldFolder, id)), false)
  assert.equal(existsSync(join(oldFolder, 'act_00000000000000000000000003')), true, 'nobody has read it yet')
  assert.deepEqual(await read(open(t, folder)), ['old', 'new'])
})
