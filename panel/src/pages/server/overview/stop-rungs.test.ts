import assert from 'node:assert/strict'
import { test } from 'node:test'
import { currentRung, rungsOf } from './stop-rungs.ts'

test('the step that the service tells is found on the ladder of the template', () => {
  const rungs = rungsOf([
    { command: 'stop', timeoutSeconds: 30, message: 'saving the world' },
    { signal: 'SIGINT', timeoutSeconds: 10 },
  ])
  assert.equal(currentRung(rungs, 'saving the world'), 0)
  assert.equal(currentRung(rungs, 'waiting for SIGINT to end it'), 1)
  assert.equal(currentRung(rungs, 'it did not stop in time, and is killed'), 2)
})
