import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { isFailure } from '../../../contract/errors.ts'
import { mkdirAt, openRoot, renameAt } from '../../files/sandbox/directory.ts'
import { openSandbox } from '../../files/sandbox/sandbox.ts'
import { temporaryFolder } from '../backups.testing.ts'
import { openParents, type Parents } from './restore-parents.ts'

function setUp(t: TestContext, options?: { descriptors: boolean }) {
  const base = temporaryFolder(t)
  const [tree, staging, outside] = ['tree', 'staging', 'outside'].map((name) => join(base, name)) as [
    string,
    string,
    string,
  ]
  for (const folder of [tree, staging, outside]) mkdirSync(folder)
  for (const name of ['0', '1', '2']) writeFileSync(join(staging, name), name)
  const from = openRoot(staging)
  const parents = openParents(openSandbox(tree, options))
  t.after(() => {
    parents[Symbol.dispose]()
    from[Symbol.dispose]()
  })
  const place = (staged: string, path: string[], by: Parents = parents) =>
    by.within(path, (parent, name) => renameAt(from, staged, parent, name))
  return { tree, staging, outside, parents, place }
}

it('makes a directory again that was removed between two things put into it', (t) => {
  const { tree, place } = setUp(t)
  place('0', ['world', 'a'])
  rmSync(join(tree, 'world'), { recursive: true })
  place('1', ['world', 'b'])
  place('2', ['world', 'c'])
  assert.deepEqual(readdirSync(join(tree, 'world')).sort(), ['b', 'c'])
})

it('does not follow a symlink that was swapped in for a directory, be the directory moved or removed', (t) => {
  const { tree, staging, outside, parents, place } = setUp(t)
  place('0', ['world', 'a'])
  renameSync(join(tree, 'world'), join(tree, 'moved'))
  symlinkSync(outside, join(tree, 'world'))
  place('1', ['world', 'b'])
  assert.deepEqual(readdirSync(join(tree, 'moved')).sort(), ['a', 'b'])
  rmSync(join(tree, 'moved'), { recursive: true })
  const refused = (error: unknown) => isFailure(error, 'invalid_path')
  assert.throws(() => place('2', ['world', 'c']), refused)
  parents.letGo()
  assert.throws(() => place('2', ['world', 'c']), refused)
  assert.deepEqual(readdirSync(outside), [])
  assert.ok(existsSync(join(staging, '2')))
})

it('follows nothing either where a directory can only be named by its path', (t) => {
  const { tree, outside, place } = setUp(t, { descriptors: false })
  place('0', ['world', 'a'])
  renameSync(join(tree, 'world'), join(tree, 'moved'))
  symlinkSync(outside, join(tree, 'world'))
  assert.throws(
    () => place('1', ['world', 'b']),
    (error) => isFailure(error, 'invalid_path'),
  )
  assert.deepEqual(readdirSync(outside), [])
})

it('sees the tree as it is once it has let go', (t) => {
  const { tree, parents, place } = setUp(t)
  place('0', ['world', 'a'])
  renameSync(join(tree, 'world'), join(tree, 'moved'))
  parents.letGo()
  place('1', ['world', 'b'])
  assert.deepEqual(readdirSync(join(tree, 'world')), ['b'])
  assert.deepEqual(readdirSync(join(tree, 'moved')), ['a'])
})

it('leaves it to the caller to know what is missing when the directory is there', (t) => {
  const { parents, place } = setUp(t)
  place('0', ['world', 'a'])
  assert.throws(() => place('0', ['world', 'a']), { code: 'ENOENT' })
  parents.within(['world', 'inner'], (parent, name) => mkdirAt(parent, name))
  assert.throws(() => parents.within(['world', 'inner'], (parent, name) => mkdirAt(parent, name)), { code: 'EEXIST' })
})
