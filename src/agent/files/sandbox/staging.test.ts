import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTree, withoutRoot } from '../trees.testing.ts'
import { createStaging } from './staging.ts'

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

test('a service that is not root takes away directories that may not be written to', { skip: withoutRoot() }, (t) => {
  const base = makeTree(t)
  mkdirSync(join(base, 'tmp-one/deep'), { recursive: true })
  writeFileSync(join(base, 'tmp-one/deep/file'), '')
  for (const path of ['tmp-one/deep', 'tmp-one']) chmodSync(join(base, path), 0o555)
  spawnSync('chown', ['-R', '65534:65534', base])
  const module = new URL('./staging.ts', import.meta.url)
  const code = `process.setgroups([]); process.setgid(65534); process.setuid(65534)
    const { createStaging } = await import(${JSON.stringify(module.href)})
    await createStaging(${JSON.stringify(base)}, console.error).recover()`
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
  assert.deepEqual([readdirSync(base), stderr], [[], ''])
})
