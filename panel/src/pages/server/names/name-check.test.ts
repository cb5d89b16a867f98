import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameFault, normaliseName } from './name-check.ts'

test('a name is checked while it is typed', () => {
  const check = (name: string, zone = 'play.test') => nameFault(name, zone, ['castle.play.test'])
  assert.equal(check('keep'), null)
  assert.equal(check('castle'), 'own')
  assert.equal(check('castle', 'other.test'), null)
  for (const name of ['', '-a', 'a-', 'ä', 'a.b', 'A', 'a'.repeat(64)]) assert.equal(check(name), 'form', name)
  assert.equal(check('xn--abc'), 'encoded')
  assert.equal(check('a'.repeat(63), `${'z'.repeat(60)}.`.repeat(3)), 'long')
  assert.equal(normaliseName('My Castle'), 'my-castle')
})
