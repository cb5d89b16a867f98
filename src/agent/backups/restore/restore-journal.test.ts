import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { openChild, openRoot } from '../../files/sandbox/directory.ts'
import { openSandbox } from '../../files/sandbox/sandbox.ts'
import { createRestoreGate } from '../../restore-state.ts'
import { assertSameTree, snapshot, temporaryFolder } from '../backups.testing.ts'
import { createWay } from './restore-conflicts.ts'
import { rollForward } from './restore-forward.ts'
import { createJournal, operationsOf, readCommitment } from './restore-journal.ts'
import { syncPaths } from './restore-sync.ts'
import type { RestoreTarget } from './restore-target.ts'

const BATCH = 'batch'
const FILES = 3000
const attributes = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, mtime: '1500000000000000000' }

/** A tree with one file to be replaced and a journal that does it, with so many files that its lists are read in pieces. */
async function committed(t: TestContext) {
  const base = temporaryFolder(t)
  for (const name of ['tree/old', 'staging', `trash/${BATCH}`]) mkdirSync(join(base, name), { recursive: true })
  writeFileSync(join(base, 'tree/old/file'), 'old')
  const staging = openRoot(join(base, 'staging'))
  const trash = openRoot(join(base, 'trash'))
  t.after(() => {
    staging[Symbol.dispose]()
    trash[Symbol.dispose]()
  })
  const journal = createJournal(staging)
  const { ino } = lstatSync(join(base, 'tree/old/file'), { bigint: true })
  journal.add('displace', { path: ['old', 'file'], item: 0, inode: String(ino) })
  journal.add('mkdir', { path: ['new'] })
  for (let staged = 0; staged < FILES; staged++) {
    writeFileSync(join(base, 'staging', String(staged)), `content ${staged}`)
    journal.add('place', { path: pathOf(staged), staged })
  }
  for (const [folder, name] of ['folder', 'there'].entries()) {
    mkdirSync(join(base, `staging/d${folder}`))
    writeFileSync(join(base, `staging/d${folder}/file`), 'inside')
    journal.add('mkdir', { path: [name], folder })
    journal.inside([name], folder)('file', FILES + folder)
  }
  journal.add('link', { path: ['linked'], to: ['new', nameOf(1)] })
  journal.add('meta', { path: ['new'], mode: 0o711, isSymlink: false, before: null, ...attributes })
  journal.add('meta', { path: ['gone', 'since'], mode: 0o711, isSymlink: false, before: null, ...attributes })
  const report = { filesRestored: FILES, filesKept: 0, bytesRestored: 0, displaced: 1 }
  const head = { jobId: 'job_a', backupId: 'bkp_a', report, trashBatches: [BATCH], stagedCount: FILES + 2 }
  await journal.commit(head, new Float64Array(3 * FILES + 6))
  journal.close()
  const roll = async () => {
    const openTrash = (batch: string) => openChild(trash, batch)
    const target = targetFor(base)
    const way = createWay(target, staging, openTrash, 'forward')
    return await rollForward({ staging, head: readCommitment(staging, 'forward'), target, openTrash, way })
  }
  return { base, tree: join(base, 'tree'), staging, roll }
}

/** As an agent has it, for files in `tree`. */
function targetFor(base: string): RestoreTarget {
  const files = openSandbox(join(base, 'tree'))
  const gate = createRestoreGate(join(base, 'staging'))
  return {
    folders: { staging: join(base, 'staging'), trash: join(base, 'trash') },
    sandbox: files,
    prepareTrash: () => assert.fail('nothing is in the way'),
    serverId: 'srv_a',
    repository: assert.fail,
    recoverTrash: assert.fail,
    usage: {
      quota: () => ({ bytes: null, entries: null }),
      fitsEntries: () => true,
      add: () => assert.fail(),
      read: () => assert.fail(),
      shrink: () => assert.fail(),
      touch: () => {},
    },
    gate,
    now: Date.now,
    onUnexpected: assert.fail,
  }
}

const pathOf = (staged: number) => [...(staged % 2 ? ['new'] : ['old', 'file']), nameOf(staged)]

function assertAllInPlace(tree: string): void {
  for (let staged = 0; staged < FILES; staged++)
    assert.equal(readFileSync(join(tree, ...pathOf(staged)), 'utf8'), `content ${staged}`)
}

/** Of many bytes each, so that the ends of pieces fall into the middle of one. */
const nameOf = (staged: number) => `${'☃🎮'.repeat(20)} ${staged}`

it('is carried out, and carried out again, to the same tree', async (t) => {
  const { base, tree, roll } = await committed(t)
  const touched = await roll()
  assert.deepEqual(touched, [['old'], [], ['old', 'file'], ['new'], ['gone', 'since']])
  const once = snapshot(tree)
  assert.equal(Object.keys(once).length, FILES + 8)
  assertAllInPlace(tree)
  assert.equal(readFileSync(join(base, 'trash', BATCH, '0000'), 'utf8'), 'old')
  await roll()
  assertSameTree(snapshot(tree), once)
  assert.equal(readFileSync(join(base, 'trash', BATCH, '0000'), 'utf8'), 'old')
})

it('goes on where half of it was done', async (t) => {
  const { base, tree, roll } = await committed(t)
  renameSync(join(tree, 'old/file'), join(base, 'trash', BATCH, '0000'))
  mkdirSync(join(tree, 'new'))
  for (let staged = 1; staged < FILES; staged += 4)
    renameSync(join(base, 'staging', String(staged)), join(tree, 'new', nameOf(staged)))
  await roll()
  assertAllInPlace(tree)
})

it('leaves alone what was put in place and changed since', async (t) => {
  const { tree, roll } = await committed(t)
  await roll()
  rmSync(join(tree, 'old'), { recursive: true })
  writeFileSync(join(tree, 'old'), 'a file by now')
  await roll()
  assert.equal(readFileSync(join(tree, 'old'), 'utf8'), 'a file by now')
})

it('moves a staged folder as a whole, or file by file where its directory is there', async (t) => {
  const { base, tree, staging, roll } = await committed(t)
  const { ino } = lstatSync(join(base, 'staging/d0/file'))
  mkdirSync(join(tree, 'there'))
  writeFileSync(join(tree, 'there/own'), 'newer')
  await roll()
  assert.equal(lstatSync(join(tree, 'folder/file')).ino, ino)
  assert.deepEqual(readdirSync(join(tree, 'there')).sort(), ['file', 'own'])
  for (const name of ['folder', 'there']) assert.equal(readFileSync(join(tree, name, 'file'), 'utf8'), 'inside')
  assert.deepEqual(readdirSync(join(staging.address, 'd1')), [])
  // What was moved and is gone since does not come back.
  rmSync(join(tree, 'folder/file'))
  await roll()
  assert.deepEqual(readdirSync(join(tree, 'folder')), [])
})

it('is not carried out where a list is not what was committed', async (t) => {
  const { base, roll } = await committed(t)
  appendFileSync(join(base, 'staging/place'), '{}\n')
  await assert.rejects(roll, /the place part of a restore journal is damaged/)
})

it('what somebody has taken away since does not keep it from ending', async (t) => {
  const { tree, roll } = await committed(t)
  await roll()
  rmSync(join(tree, 'new'), { recursive: true })
  rmSync(join(tree, 'linked'))
  const touched = await roll()
  assert.ok(touched)
  assert.equal(existsSync(join(tree, 'new', nameOf(1))), false)
  assert.equal(existsSync(join(tree, 'linked')), false)
  rmSync(join(tree, 'old'), { recursive: true })
  writeFileSync(join(tree, 'old'), 'a file where a directory was')
  await syncPaths(openSandbox(tree), touched)
})

it('writes down what is staged in a folder as any other step', async (t) => {
  const base = temporaryFolder(t)
  using staging = openRoot(base)
  const journal = createJournal(staging)
  const paths = [['a'], ['a', 'plain.txt'], ['"quoted"\\', 'line\nfeed', 'größe 二'], ['\u{10fe80}', '\ud800']]
  for (const [staged, path] of paths.entries()) journal.inside(path.slice(0, -1), 7)(path.at(-1) ?? '', staged)
  const report = { filesRestored: 4, filesKept: 0, bytesRestored: 0, displaced: 0 }
  const head = { jobId: 'job_a', backupId: 'bkp_a', report, trashBatches: [], stagedCount: 4 }
  await journal.commit(head, new Float64Array())
  journal.close()
  assert.deepEqual(
    [...operationsOf(staging, 'inside')].flat(),
    paths.map((path, staged) => ({ path, staged, folder: 7 })),
  )
})
