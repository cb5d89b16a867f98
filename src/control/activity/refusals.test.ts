import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Actor } from '../http/actor.ts'
import { createRefusals } from './refusals.ts'

const refusal = { actor: { id: 'tok_a' } as Actor, serverId: 'srv_a', scope: 'files:read' } as const

test('every refusal is counted once, also those that come while the count of the last minute is being recorded', async (t) => {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const entered = Promise.withResolvers<void>()
  let recording = Promise.resolve()
  let counted = 0
  const refusals = createRefusals(async (_refusal, count) => {
    counted += count
    await recording
  })
  await refusals.add(refusal)
  await refusals.add(refusal)
  now = 61_000
  recording = entered.promise
  // One closes the minute that is over, the others come before that is written down, as does the upkeep.
  const under = [refusals.add(refusal), refusals.add(refusal), refusals.flush(), refusals.add(refusal)]
  entered.resolve()
  await Promise.all(under)
  await refusals.flush(true)
  assert.equal(counted, 5)
})
