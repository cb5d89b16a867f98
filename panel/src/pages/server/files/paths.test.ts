import assert from 'node:assert/strict'
import { test } from 'node:test'
import { directoryOf, hrefOf, parentsOf } from './paths.ts'

test('a folder of any name survives the way into the address and back', () => {
  for (const path of ['/', '/world/region', '/a b/50%/ü#?&/..data']) {
    const href = hrefOf('srv_1', path)
    assert.equal(directoryOf(href.replace(/^\/servers\/srv_1\/files\/?/, '')), path)
    assert.doesNotMatch(href, /[#? ]/)
  }
})

test('an address that was typed by hand and is no encoding is taken as it is', () => {
  assert.equal(directoryOf('50%'), '/50%')
  assert.equal(directoryOf(undefined), '/')
})

test('each folder on the way down has its own path', () => {
  assert.deepEqual(parentsOf('/world/region'), [
    { name: 'world', path: '/world' },
    { name: 'region', path: '/world/region' },
  ])
})
