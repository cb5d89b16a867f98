import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCredential } from './credential.ts'

test('a link and an invitation bring their secret in the fragment, and nothing else counts', () => {
  assert.deepEqual(readCredential('#link=gkl_abc'), { link: 'gkl_abc' })
  assert.deepEqual(readCredential('#invitation=gki_abc'), { invitation: 'gki_abc' })
  assert.equal(readCredential(''), null)
  assert.equal(readCredential('#token=gk_abc'), null)
  assert.equal(readCredential('#link='), null)
})
