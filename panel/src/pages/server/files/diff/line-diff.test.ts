import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { diffLines } from './line-diff.ts'

const SIGNS = { same: ' ', removed: '-', added: '+' }
const shown = (before: string, after: string) => diffLines(before, after).map(({ kind, text }) => SIGNS[kind] + text)

test('says which lines were taken away and which were added', () => {
  assert.deepEqual(shown('a\nb\nc', 'a\nc'), [' a', '-b', ' c'])
  assert.deepEqual(shown('a\nc', 'a\nb\nc'), [' a', '+b', ' c'])
  assert.deepEqual(shown('a', 'a'), [' a'])
  assert.deepEqual(shown('x=1\ny=2\nz=3', 'x=1\ny=5\nz=3'), [' x=1', '-y=2', '+y=5', ' z=3'])
})

test('without what was added it is the one text, and without what was taken away the other', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 }).map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after)
      const without = (kind: string) => lines.filter((line) => line.kind !== kind).map((line) => line.text)
      assert.equal(without('added').join('\n'), before)
      assert.equal(without('removed').join('\n'), after)
    }),
    { numRuns: 300 },
  )
})

test('texts that have nothing in common are told at once', () => {
  const lines = (prefix: string) => Array.from({ length: 20_000 }, (_, index) => `${prefix}${index}`).join('\n')
  assert.equal(diffLines(lines('a'), lines('b')).length, 40_000)
})
