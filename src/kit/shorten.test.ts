import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonWithin, shortened } from './shorten.ts'

test('what fits is left as it is', () => {
  const value = { files: ['a', 'b'], at: null }
  assert.equal(jsonWithin(value, 100), JSON.stringify(value))
  assert.equal(shortened(value, 100), value)
})

test('a list keeps as many of its first items as fit, and cut says how many more there were', () => {
  const files = Array.from({ length: 1000 }, (_, i) => `world/region/r.${i}.0.mca`)
  const text = jsonWithin({ root: '/', files }, 8192)
  const short = JSON.parse(text)
  assert.ok(Buffer.byteLength(text) <= 8192)
  assert.ok(Buffer.byteLength(text) > 8000, 'no more is cut than has to be')
  assert.deepEqual(short.files, files.slice(0, short.files.length))
  assert.deepEqual(short.cut, { '/files': 1000 - short.files.length })
})

test('what says itself what it is in JSON is taken for that, and cut like it', () => {
  const at = new Date(0)
  const text = { toJSON: () => 'x'.repeat(9000) }
  const list = { toJSON: () => Array.from({ length: 1000 }, (_, i) => `file ${i}`) }
  const short = { unseen: 'x'.repeat(9000), toJSON: () => 'short' }
  assert.equal(jsonWithin({ short }, 8192), JSON.stringify({ short: 'short' }))
  for (const value of [
    { at, text },
    { at, list, short },
    { at, text, list },
  ])
    assert.equal(jsonWithin(value, 8192), jsonWithin(JSON.parse(JSON.stringify(value)), 8192))
})

test('a long text keeps its beginning, never half of a character', () => {
  const short = JSON.parse(jsonWithin({ name: `a${'😀'.repeat(10_000)}` }, 8192))
  assert.ok(short.name.isWellFormed())
  assert.equal(short.cut['/name'], 20_001 - (short.name.length - 1))
})

test('whatever is cut fits, is the same each time, and is not cut again', () => {
  const value = fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 3, noUnicodeString: false }))
  const large = fc.tuple(value, fc.array(fc.string({ maxLength: 100, unit: 'grapheme' }), { maxLength: 60 }))
  fc.assert(
    fc.property(large, fc.integer({ min: 64, max: 2000 }), ([fields, list], maxBytes) => {
      const text = jsonWithin({ ...fields, list }, maxBytes)
      assert.ok(Buffer.byteLength(text) <= maxBytes)
      assert.equal(jsonWithin({ ...fields, list }, maxBytes), text)
      assert.equal(jsonWithin(JSON.parse(text), maxBytes), text)
    }),
    { numRuns: 10 },
  )
})
