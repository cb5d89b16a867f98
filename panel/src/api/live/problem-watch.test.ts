import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasNewProblem, NEWEST } from './problem-watch.ts'

const entry = (id: string) => ({ id, event: 'file.written' as const })

test('problems are read again when one of the newest entries is a problem, and where more has happened than was read', () => {
  const crash = { id: 'act_3', event: 'game.crashed' as const }
  assert.equal(hasNewProblem([entry('act_2'), entry('act_1')], 'act_1'), false)
  assert.equal(hasNewProblem([entry('act_4'), crash, entry('act_2')], 'act_2'), true)
  assert.equal(hasNewProblem([entry('act_4'), crash], 'act_3'), false, 'it is known')
  const many = Array.from({ length: NEWEST }, (_, index) => entry(`act_${100 - index}`))
  assert.equal(hasNewProblem(many, 'act_1'), true, 'there may be one among those that were not read')
})
