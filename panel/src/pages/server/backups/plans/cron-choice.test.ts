import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choiceOf, cronOf, withKind } from './cron-choice.ts'

test('every schedule survives being looked at', () => {
  for (const cron of ['0 * * * *', '30 4 * * *', '5 16 * * 0', '*/10 * * * *', '0 4 1 * *', '0 4 * * 7']) {
    assert.equal(cronOf(choiceOf(cron)), cron)
  }
  assert.deepEqual(choiceOf('30 4 * * *'), { kind: 'daily', time: '04:30' })
  assert.equal(choiceOf('*/10 * * * *').kind, 'custom')
})

test('another kind keeps the time of day, and the own text begins with what was chosen', () => {
  const daily = choiceOf('30 4 * * *')
  assert.equal(cronOf(withKind(daily, 'weekly')), '30 4 * * 0')
  assert.equal(cronOf(withKind(daily, 'custom')), '30 4 * * *')
})
