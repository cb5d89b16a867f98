import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurns } from './turns.ts'
import { beginUrgent } from './urgent.ts'

const spend = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** Goes over entries, each of some processor time, and gives the loop its turns. */
async function walk(share: string, entries: number, onEntry: () => void): Promise<void> {
  const turn = createTurns(share)
  for (let entry = 0; entry < entries; entry++) {
    if (turn.due()) await turn.take()
    spend(0.05)
    onEntry()
  }
}

test('a hundred walks of one server leave another one its turns', async () => {
  const passed = { noisy: 0, quiet: 0 }
  let seen = 0
  const noisy = Array.from({ length: 100 }, () => walk('noisy', 400, () => passed.noisy++))
  const quiet = walk('quiet', 2000, () => passed.quiet++).then(() => {
    seen = passed.noisy
  })
  await quiet
  // In equal shares it takes as much as the other had; served by walk it would be all 40,000.
  assert.ok(seen < 20_000, `${seen} of the noisy one's before the quiet one was done`)
  await Promise.all(noisy)
  assert.deepEqual(passed, { noisy: 40_000, quiet: 2000 })
})

test('a signal is seen at the next turn', async () => {
  const abort = new AbortController()
  const turn = createTurns('', abort.signal)
  abort.abort(new Error('enough'))
  await assert.rejects(turn.take(), /enough/)
})

test('who looks at a few entries does not wait for those who have used up the turn', (t) => {
  // By a clock that stands still meanwhile: a busy machine may let others run at any point of this.
  let now = performance.now()
  t.mock.method(performance, 'now', () => now)
  const walk = createTurns('noisy')
  walk.due()
  now += 2
  assert.equal(walk.due(), true)
  const few = createTurns('quiet')
  assert.equal(few.due(), false)
  now += 1
  assert.equal(few.due(), true)
})

const nextTurn = () => new Promise(setImmediate)

test('a walk pauses while a change is under way that somebody waits for, and goes on beside one that does not end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  // The turn of the tests before.
  await nextTurn()
  let taken = 0
  const take = async () => {
    await createTurns('bulk').take()
    taken++
  }
  const urgent = beginUrgent()
  const first = take()
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  assert.equal(taken, 0)
  urgent[Symbol.dispose]()
  await first
  using _urgent = beginUrgent()
  const second = take()
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  assert.equal(taken, 1)
  t.mock.timers.tick(10)
  await second
})
