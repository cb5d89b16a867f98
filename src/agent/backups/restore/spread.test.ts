// What is restored is not made where many files were deleted just before.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempDisposableSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openChild, openRoot } from '../../files/sandbox/directory.ts'
import { createPlaces, spreadWithin } from './spread.ts'

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

/** Whose kernel takes what `spend` says, and a directory in which they make others. */
function makePlaces(t: TestContext) {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'gamekeeper-places-'))
  const root = openRoot(folder.path)
  mkdirSync(join(folder.path, 'job'))
  const job = openChild(root, 'job')
  let spentUs = 0
  const places = createPlaces(root, () => spentUs)
  t.after(() => {
    places[Symbol.dispose]()
    job[Symbol.dispose]()
    root[Symbol.dispose]()
    folder.remove()
  })
  const elsewhere = () => readdirSync(folder.path).filter((name) => name !== 'job')
  return {
    places,
    path: folder.path,
    elsewhere,
    spend(us: number, files: number, bytes = 0) {
      spentUs += us
      places.noteMade(files, bytes)
    },
    make(name: string) {
      places.make(job, name)
      assert.equal(statSync(join(folder.path, 'job', name)).mode & 0o777, 0o700)
      for (const other of elsewhere()) assert.deepEqual(readdirSync(join(folder.path, other)), [])
    },
  }
}

test('a restore stays in its part of the disk as long as files take the kernel no longer than their number and size explain', (t) => {
  const { make, spend, elsewhere } = makePlaces(t)
  make('a')
  for (let times = 0; times < 10; times++) spend(15_000, 1000)
  spend(2_000_000, 1024, 1_000_000_000)
  make('b')
  assert.deepEqual(elsewhere(), [])
})

test('where files take the kernel long, directories are made elsewhere and moved, and nothing of that is left', (t) => {
  const { places, make, spend, elsewhere } = makePlaces(t)
  spend(300_000, 1000)
  assert.deepEqual(elsewhere(), [], 'so few say nothing')
  spend(1000, 24)
  const [first, ...others] = elsewhere()
  assert.match(first ?? '', /^tmp-/, 'which a start takes away')
  assert.deepEqual(others, [])
  make('a')
  spend(15_000, 1024)
  make('b')
  assert.deepEqual(elsewhere(), [first], 'where they are quick again, it stays')
  spend(300_000, 1024)
  assert.equal(elsewhere().length, 1)
  assert.notDeepEqual(elsewhere(), [first])
  make('c')
  places[Symbol.dispose]()
  assert.deepEqual(elsewhere(), [])
})

test('what cannot be taken away at the end is left to the next start, and the restore does not fail for it', (t) => {
  const { places, path, spend, elsewhere } = makePlaces(t)
  spend(300_000, 1024)
  writeFileSync(join(path, elsewhere()[0] ?? '', 'file'), '')
  places[Symbol.dispose]()
  assert.equal(elsewhere().length, 1)
})
