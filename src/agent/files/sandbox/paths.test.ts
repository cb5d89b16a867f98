import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isFailure } from '../../../contract/errors.ts'
import { nameFromBytes, nameFromLatin1, nameToBytes } from './names.ts'
import { checkNewName, formatPath, isWithin, outermost, parseEntry, parsePath } from './paths.ts'

const refused = (work: () => unknown) => assert.throws(work, (error) => isFailure(error, 'invalid_path'))

const NEVER = [
  '',
  '..',
  '/..',
  '/../',
  'a/..',
  'a/../b',
  './..',
  '//..//',
  '%2e/a',
  'a\0b',
  '\0',
  '..\\..\\etc',
  'a\\..\\b',
  '%2e%2e',
  '%2E%2e/a',
  '%2e%2e%2fetc%2fpasswd',
  '..%2fetc',
  '..%5cetc',
  '%252e%252e',
  '%25252e%25252e',
  '.%2e',
  'x'.repeat(256),
  `a/${'é'.repeat(128)}`,
  '/a'.repeat(2049),
  '\ud800',
  'a\udfffb',
]

for (const path of NEVER)
  test(`the path ${JSON.stringify(path.slice(0, 40))} is refused`, () => {
    refused(() => parsePath(path))
    refused(() => parseEntry([], path))
  })

test('paths that are fine', () => {
  assert.deepEqual(parsePath('/'), [])
  assert.deepEqual(parsePath('/a/b c/d'), ['a', 'b c', 'd'])
  assert.deepEqual(parsePath('a/b/'), ['a', 'b'])
  assert.deepEqual(parsePath('/...'), ['...'])
  assert.deepEqual(parsePath('/..a/b..'), ['..a', 'b..'])
  assert.deepEqual(parsePath(`/${'x'.repeat(255)}`), ['x'.repeat(255)])
  assert.deepEqual(parsePath('/100%'), ['100%'])
  assert.deepEqual(parsePath('/new\nline/back\\slash'), ['new\nline', 'back\\slash'])
})

for (const name of ['a\\b', 'a\nb', 'a\u007f', 'a.', 'a ', ' a', 'a\u2028b', '...', 'a\u{10fe80}', 'a/b', '', '..'])
  test(`the name ${JSON.stringify(name)} cannot be made`, () => {
    refused(() => checkNewName(name))
  })

test('what exists may be named though it could not be made', () => {
  for (const name of ['a\\b', 'a\nb', 'a.', 'a ', 'a\u{10fe80}']) {
    assert.deepEqual(parsePath(`/${name}`), [name])
  }
})

test('slashes too many and dots mean nothing', () => {
  for (const path of ['/a/b', 'a/b', '//a//b', './a/./b', '/a/b/', 'a/b//', '/./a/b/.', '///a/b'])
    assert.deepEqual(parsePath(path), ['a', 'b'], path)
  for (const path of ['/', '//', '.', './', '/.']) assert.deepEqual(parsePath(path), [], path)
})

test('an entry is relative also with a slash in front, and never its root', () => {
  assert.deepEqual(parseEntry(['a'], 'b/c'), ['a', 'b', 'c'])
  assert.deepEqual(parseEntry(['a'], '/b/c'), ['a', 'b', 'c'])
  assert.deepEqual(parseEntry([], '/etc/passwd'), ['etc', 'passwd'])
  for (const entry of ['', '/', '.', './', '//']) refused(() => parseEntry(['a'], entry))
  refused(() => parseEntry(parsePath(`/${'d/'.repeat(1500)}`), 'e/'.repeat(600)))
})

test('whatever is accepted holds no traversal and formats back to the same', () => {
  const part = fc.oneof(fc.constantFrom('.', '..', '', '%2e', '\\', '\0', 'a', '/'), fc.string({ unit: 'binary' }))
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      let segments: readonly string[]
      try {
        segments = parsePath(parts.join('/'))
      } catch (error) {
        assert.ok(isFailure(error, 'invalid_path'))
        return
      }
      for (const segment of segments) {
        assert.ok(!['', '.', '..'].includes(segment) && !/[/\0]/.test(segment))
        const onDisk = nameToBytes(segment)
        assert.ok(onDisk.length <= 255 && !onDisk.includes(0x2f) && !onDisk.includes(0))
      }
      assert.deepEqual(parsePath(formatPath(segments)), segments)
    }),
    { numRuns: 2000 },
  )
})

test('every name that a disk can hold survives the way to text and back, through JSON and a URL', () => {
  const bytes = fc.uint8Array({ min: 1, max: 255, minLength: 1, maxLength: 40 }).filter((name) => !name.includes(0x2f))
  const awkward = fc
    .constantFrom('\u{10fe80}', '\u{10feff}x', '\ufeffbom', 'é', '\u{10ffff}')
    .map((s) => Buffer.from(s))
  fc.assert(
    fc.property(fc.oneof(bytes, awkward), (raw) => {
      const name = nameFromBytes(raw)
      assert.ok(name.isWellFormed())
      assert.equal(nameFromLatin1(Buffer.from(raw).toString('latin1')), name)
      assert.deepEqual(nameToBytes(JSON.parse(JSON.stringify(name))), Buffer.from(raw))
      assert.deepEqual(nameToBytes(decodeURIComponent(encodeURIComponent(name))), Buffer.from(raw))
    }),
    { numRuns: 2000 },
  )
})

test('of paths that overlap the outermost are left, each once', () => {
  const paths = ['a/b', '/a', 'c', './c/', 'ab'].map(parsePath)
  assert.deepEqual(outermost(paths), [['a'], ['c'], ['ab']])
})

test('isWithin compares names, not text', () => {
  assert.ok(isWithin([], ['a']))
  assert.ok(isWithin(['a'], ['a']))
  assert.ok(!isWithin(['a'], ['ab']))
})
