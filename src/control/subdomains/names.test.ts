import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nameFault, normaliseSubdomain, skeleton } from './names.ts'

const ZONE = { zone: 'play.test', reserved: ['arena'] }
const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789-']
const ascii = fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 70 })

test('a name that is given out is always one label that DNS takes', () => {
  fc.assert(
    fc.property(fc.oneof(ascii, fc.string({ maxLength: 70 })), (text) => {
      const name = normaliseSubdomain(text)
      if (nameFault(name, ZONE) !== null) return
      assert.match(name, /^[a-z0-9-]{1,63}$/)
      assert.doesNotMatch(name, /^-|-$|^..--/)
    }),
  )
})

test('every good label is free to have, unless it is reserved or reads so', () => {
  const good = ascii.filter((name) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name) && !/^..--/.test(name))
  fc.assert(
    fc.property(good, (name) => {
      assert.ok([null, 'reserved', 'lookalike'].includes(nameFault(name, ZONE)))
    }),
  )
})

test('the same name in any case is the same name', () => {
  fc.assert(
    fc.property(ascii, fc.array(fc.boolean()), (name, raised) => {
      const mixed = [...name].map((letter, index) => (raised[index] ? letter.toUpperCase() : letter)).join('')
      assert.equal(normaliseSubdomain(mixed), name)
    }),
  )
})

test('swapping letters for their look-alikes never leads past the reserved list', () => {
  const swaps: Record<string, string[]> = { o: ['0'], l: ['1', 'i'], i: ['1', 'l'], s: ['5'], m: ['rn'], w: ['vv'] }
  const reserved = fc.constantFrom('www', 'panel', 'mail', 'admin', 'login', 'smtp', 'billing', 'support', 'arena')
  fc.assert(
    fc.property(reserved, fc.array(fc.nat(3)), (name, choices) => {
      const disguised = [...name]
        .map((letter, i) => [letter, ...(swaps[letter] ?? [])][choices[i] ?? 0] ?? letter)
        .join('')
      assert.ok(['reserved', 'lookalike'].includes(nameFault(disguised, ZONE) ?? ''), disguised)
    }),
  )
})

test('what reads alike has one skeleton, and a skeleton is its own', () => {
  for (const [a, b] of [
    ['castle', 'cast1e'],
    ['modern', 'modem'],
    ['my-castle', 'mycastle'],
    ['zoo', 'z00'],
    ['vvar', 'war'],
  ]) {
    assert.equal(skeleton(a ?? ''), skeleton(b ?? ''))
  }
  assert.notEqual(skeleton('castle'), skeleton('cattle'))
})

test('each fault by its name', () => {
  const cases: [string, ReturnType<typeof nameFault>][] = [
    ['castle', null],
    ['a', null],
    ['9', null],
    ['a'.repeat(63), null],
    ['a'.repeat(64), 'form'],
    ['', 'form'],
    ['-a', 'form'],
    ['a-', 'form'],
    ['_minecraft', 'form'],
    ['a.b', 'form'],
    ['a b', 'form'],
    ['ä', 'form'],
    ['аdmin', 'form'],
    ['CASTLE', 'form'],
    ['xn--80ak6aa92e', 'punycode'],
    ['ab--c', 'punycode'],
    ['www', 'reserved'],
    ['arena', 'reserved'],
    ['admin1', 'reserved'],
    ['ns5', 'reserved'],
    ['mx1', 'reserved'],
    ['mail-02', 'reserved'],
    ['arena7', 'reserved'],
    ['adm1n1', 'lookalike'],
    ['castle1', null],
    ['nspire', null],
    ['mx1a', null],
    ['pane1', 'lookalike'],
    ['ma-il', 'lookalike'],
  ]
  for (const [name, fault] of cases) assert.equal(nameFault(name, ZONE), fault, name)
  const deep = { zone: `${'a.'.repeat(110)}test`, reserved: [] }
  assert.equal(nameFault('short', deep), null)
  assert.equal(nameFault('rather-too-long', deep), 'length')
})
