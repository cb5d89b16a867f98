import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurns } from './turns.ts'

/** Goes over entries, each of some processor time, and gives the loop its turns. */
async function walk(share: string, entries: number, onEntry: () => void): Promise<void> {
  const turn = createTurns(share)
  for (let entry = 0; entry < entries; entry++) {
    if (turn.due()) await turn.take()
    for (const end = performance.now() + 0.05; performance.now() < end; );
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
