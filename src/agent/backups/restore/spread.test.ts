// What is restored is not made where many files were deleted just before.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openRoot } from '../../files/sandbox/directory.ts'
import { spreadWithin } from './spread.ts'

const isMarked = (path: string) =>
  /^\S*T\S* /.test(spawnSync('lsattr', ['-d', path], { encoding: 'utf8' }).stdout ?? '')

test('a directory is marked as the top of a hierarchy where the file system knows that, and is left as it is where not', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'gamekeeper-spread-'))
  const [byHand, staging] = [join(folder.path, 'by-hand'), join(folder.path, 'staging')]
  for (const path of [byHand, staging]) mkdirSync(path)
  spawnSync('chattr', ['+T', byHand])
  using root = openRoot(staging)
  await spreadWithin(root)
  assert.equal(isMarked(staging), isMarked(byHand))
  assert.equal(isMarked(folder.path), false)
})

test('where there is no chattr, nothing happens', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'gamekeeper-spread-'))
  using root = openRoot(folder.path)
  const { PATH } = process.env
  process.env.PATH = folder.path
  try {
    await spreadWithin(root)
  } finally {
    process.env.PATH = PATH
  }
  assert.equal(isMarked(folder.path), false)
})
