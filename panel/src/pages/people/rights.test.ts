import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RIGHTS, rightOf, scopesOf } from './rights.ts'

test('each right holds the one before it, and is recognised by its scopes in any order', () => {
  for (const [index, right] of RIGHTS.entries()) {
    const before = RIGHTS[index - 1]
    if (before) assert.ok(scopesOf(before).every((scope) => scopesOf(right).includes(scope)))
    assert.equal(rightOf(scopesOf(right).toReversed()), right)
  }
  assert.equal(rightOf(['servers:read']), null)
  assert.equal(rightOf(['*']), 'owner')
})

test('whoever may only look or play the console cannot read files, and nobody who is invited can invite', () => {
  const files = /^(files|backups):/
  assert.equal(
    scopesOf('look').some((scope) => files.test(scope)),
    false,
  )
  assert.equal(
    scopesOf('console').some((scope) => files.test(scope)),
    false,
  )
  assert.equal(
    scopesOf('everything').some((scope) => scope === '*' || scope.endsWith(':admin')),
    false,
  )
})
