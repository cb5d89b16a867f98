import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeTree, openDescriptors } from '../trees.testing.ts'
import { openRoot } from './directory.ts'
import { openWalk, type Walk } from './walk.ts'

/** Close to each other, on both sides of what separates a directory from what it holds. */
const name = fc.constantFrom('a', 'a!', 'a.b', 'ab', 'b', 'é', 'z')
const path = fc.array(name, { minLength: 1, maxLength: 4 })
/** What is in the order of a walk. */
const keyOf = (one: string) => Buffer.from(one.slice(1).replaceAll('/', '\0')).toString('latin1')

function filesOf(paths: string[][]): Record<string, string> {
  const all = paths.map((names) => names.join('/'))
  const isDirectory = (one: string) => all.some((other) => other.startsWith(`${one}/`))
  return Object.fromEntries(all.map((one) => [isDirectory(one) ? `${one}/` : one, '']))
}

/** What it still gives. */
function pathsLeft(walk: Walk): string[] {
  const paths: string[] = []
  for (let found = walk.next(); found; found = walk.next()) paths.push(found.path)
  return paths
}

test('a walk that skips gives what comes from there on, wherever it was and whatever is there', (t) => {
  const before = openDescriptors()
  fc.assert(
    fc.property(fc.array(path, { maxLength: 20 }), fc.nat({ max: 12 }), path, (paths, passed, wanted) => {
      const base = makeTree(t, filesOf(paths))
      using top = openRoot(base)
      using whole = openWalk(top, { sorted: true })
      const all = pathsLeft(whole)
      using walk = openWalk(top, { sorted: true })
      const given: string[] = []
      for (let count = 0; count < passed; count++) given.push(walk.next()?.path ?? '')
      const from = keyOf(`/${wanted.join('/')}`)
      const rest = all.slice(given.length)
      walk.skipTo(from)
      assert.deepEqual(
        pathsLeft(walk),
        rest.filter((one) => keyOf(one) >= from),
      )
      rmSync(base, { recursive: true })
    }),
    { numRuns: 400 },
  )
  assert.deepEqual(openDescriptors(), before)
})

test('a walk finds what has that very path and is still to come, and goes on behind it', (t) => {
  fc.assert(
    fc.property(fc.array(path, { maxLength: 20 }), fc.nat({ max: 12 }), fc.array(path), (paths, passed, wanted) => {
      const base = makeTree(t, filesOf(paths))
      using top = openRoot(base)
      using whole = openWalk(top, { sorted: true })
      const all = pathsLeft(whole)
      using walk = openWalk(top, { sorted: true })
      let last = ''
      for (let count = 0; count < Math.min(passed, all.length); count++) last = walk.next()?.path ?? last
      for (const one of wanted.map((names) => `/${names.join('/')}`)) {
        const isToCome = keyOf(one) >= keyOf(last)
        assert.equal(walk.find(keyOf(one))?.path, isToCome && all.includes(one) ? one : undefined, one)
        if (isToCome) last = one
      }
      assert.deepEqual(
        pathsLeft(walk),
        all.filter((one) => keyOf(one) > keyOf(last)),
      )
      rmSync(base, { recursive: true })
    }),
    { numRuns: 400 },
  )
})

test('a walk that skips to what is gone by then goes on behind it', (t) => {
  const base = makeTree(t, { 'a/1': '', 'b/c/2': '', 'b/d/3': '', 'e/4': '' })
  using top = openRoot(base)
  for (const gone of ['b/c/2', 'b/c', 'b']) {
    using walk = openWalk(top, { sorted: true })
    assert.equal(walk.next()?.path, '/a')
    rmSync(join(base, gone), { recursive: true })
    walk.skipTo('b\0c\0' + '2')
    const expected = gone === 'b' ? '/e' : '/b/d'
    assert.equal(walk.next()?.path, expected)
  }
})
