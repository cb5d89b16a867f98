import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newNames } from './new-names.ts'

const NAMES = ['a.old.txt', 'b.txt']
const TAKEN = new Set([...NAMES, 'c.txt'])
const replace = (find: string, replacement: string) => ({ kind: 'replace' as const, find, replacement })

test('text is replaced as it stands, wherever it is in the name', () => {
  const [first, second] = newNames(NAMES, TAKEN, replace('.old', '$&'))
  assert.deepEqual(first, { from: 'a.old.txt', to: 'a$&.txt', fault: null })
  assert.equal(second?.to, 'b.txt')
})

test('a pattern has the name, its ending and a number of even width', () => {
  const renamed = newNames(NAMES, TAKEN, { kind: 'pattern', pattern: '{n} {name}{ext}', first: 9 })
  assert.deepEqual(
    renamed.map(({ to }) => to),
    ['09 a.old.txt', '10 b.txt'],
  )
})

test('names that are empty, taken, used twice or have a slash are named; those that change places are good', () => {
  const faults = (find: string, replacement: string) =>
    newNames(NAMES, TAKEN, replace(find, replacement)).map(({ fault }) => fault)
  assert.deepEqual(faults('b', 'c'), [null, 'taken'])
  assert.deepEqual(faults('b.txt', ''), [null, 'empty'])
  assert.deepEqual(faults('b', 'x/y'), [null, 'slash'])
  const same = newNames(NAMES, TAKEN, { kind: 'pattern', pattern: 'same{ext}', first: 1 })
  assert.deepEqual(
    same.map(({ fault }) => fault),
    ['twice', 'twice'],
  )
  const shifted = newNames(['1', '2'], new Set(['1', '2']), { kind: 'pattern', pattern: '{n}', first: 2 })
  assert.deepEqual(
    shifted.map(({ to, fault }) => [to, fault]),
    [
      ['2', null],
      ['3', null],
    ],
  )
})
