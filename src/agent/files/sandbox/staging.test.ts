import assert from 'node:assert/strict'
import { chmodSync, chownSync, readdirSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTree, withoutRoot } from '../trees.testing.ts'
import { createStaging } from './staging.ts'

const NOBODY = 65_534

test('what cannot be taken away keeps nothing else from being taken away later', async (t) => {
  const base = makeTree(t)
  const told: unknown[] = []
  const staging = createStaging(base, (error) => told.push(error))
  const { unlink } = fs
  let isBroken = (_name: string) => true
  fs.unlink = async (path) => {
    if (isBroken(String(path))) throw Object.assign(new Error('EIO: injected'), { code: 'EIO' })
    await unlink(path)
  }
  syncBuiltinESMExports()
  try {
    const names: string[] = []
    for (let count = 0; count < 3; count++) {
      await using staged = staging.open()
      writeFileSync(join(base, staged.name), '')
      names.push(staged.name)
    }
    assert.deepEqual([readdirSync(base).sort(), told.length], [names.toSorted(), 3])
    isBroken = (path) => path.endsWith(names[0] ?? '')
    await staging.tidy()
    assert.deepEqual([readdirSync(base), told.length], [[names[0]], 4])
    isBroken = () => false
    await staging.tidy()
    await staging.tidy()
    assert.deepEqual([readdirSync(base), told.length], [[], 4])
  } finally {
    fs.unlink = unlink
    syncBuiltinESMExports()
  }
})

test('a service that is not root takes away directories that may not be written to', {
  skip: withoutRoot(),
}, async (t) => {
  const base = makeTree(t, { 'tmp-one/deep/file': '' })
  for (const path of ['', 'tmp-one', 'tmp-one/deep', 'tmp-one/deep/file']) chownSync(join(base, path), NOBODY, NOBODY)
  for (const path of ['tmp-one', 'tmp-one/deep']) chmodSync(join(base, path), 0o555)
  process.seteuid?.(NOBODY)
  try {
    await createStaging(base, assert.ifError).recover()
  } finally {
    process.seteuid?.(0)
  }
  assert.deepEqual(readdirSync(base), [])
})
