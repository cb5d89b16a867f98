// What was opened is closed where the call after it fails, for whatever reason.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { test } from 'node:test'
import { makeTree, openDescriptors } from '../trees.testing.ts'
import { openSandbox } from './sandbox.ts'

const EDQUOT = () => Object.assign(new Error('EDQUOT: injected'), { code: 'EDQUOT' })

/** Until the end of the block. */
function replaced<K extends 'realpathSync' | 'opendirSync'>(
  name: K,
  by: (original: (typeof fs)[K]) => unknown,
): Disposable {
  const original = fs[name]
  fs[name] = by(original) as (typeof fs)[K]
  syncBuiltinESMExports()
  return {
    [Symbol.dispose]() {
      fs[name] = original
      syncBuiltinESMExports()
    },
  }
}

test('a directory that is made and cannot be counted is closed', (t) => {
  const onMade = () => {
    throw EDQUOT()
  }
  const sandbox = openSandbox(makeTree(t), { onMade })
  const before = openDescriptors()
  assert.throws(() => sandbox.mkdirs('/a/b'), { code: 'disk_full' })
  assert.throws(() => sandbox.openNewPlace('/c/d'), { code: 'disk_full' })
  assert.deepEqual(openDescriptors(), before)
})

test('a directory whose names cannot be read is closed, with its stream', async (t) => {
  const sandbox = openSandbox(makeTree(t, { 'a/b': '' }))
  const before = openDescriptors()
  using _failing = replaced('opendirSync', (opendirSync) => (path: string) => {
    const stream = opendirSync(path)
    stream.readSync = () => {
      throw EDQUOT()
    }
    return stream
  })
  await assert.rejects(Array.fromAsync(sandbox.walk('/')), { code: 'EDQUOT' })
  assert.deepEqual(openDescriptors(), before)
})

test('a directory whose real path cannot be found out is closed', (t) => {
  const sandbox = openSandbox(makeTree(t, { 'a/b': '' }), { descriptors: false })
  const before = openDescriptors()
  let calls = 0
  using _failing = replaced('realpathSync', (realpathSync) => (path: string) => {
    // The first is that of the top.
    if (++calls > 1) throw EDQUOT()
    return realpathSync(path)
  })
  assert.throws(() => sandbox.openDirectory('/a'), { code: 'disk_full' })
  assert.deepEqual(openDescriptors(), before)
})
