// The end of a restore where a descriptor is wanting for a moment: nothing passes for damaged that was only not looked at.
import assert from 'node:assert/strict'
import fs, { mkdirSync, readdirSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { cannotRunOut, whileFew } from '../../files/few-descriptors.testing.ts'
import { openChild, openRoot } from '../../files/sandbox/directory.ts'
import { startServer } from '../../files/server.testing.ts'
import { finishSwap, folderOf, readOutcome, recoverRestores } from './restore-finish.ts'
import { createJournal } from './restore-journal.ts'
import type { RestoreTarget } from './restore-target.ts'

const ENDING = { jobId: 'job_a', backupId: 'bkp_a', direction: 'forward' } as const
const REPORT = { filesRestored: 1, filesKept: 2, bytesRestored: 3, displaced: 0 }
const DONE = { phase: 'done', report: REPORT } as const

/** A committed restore that makes one directory. */
async function committed(t: TestContext) {
  const { server, folders, tree } = await startServer(t)
  const unexpected: unknown[] = []
  let shrinks = 0
  const target: RestoreTarget = {
    serverId: 'srv_test',
    repository: () => assert.fail('there is no safety backup'),
    folders,
    sandbox: server.files,
    prepareTrash: () => assert.fail('nothing is in the way'),
    recoverTrash: async () => {},
    usage: { ...server.usage, shrink: async () => void shrinks++ },
    gate: server.gate,
    now: Date.now,
    onUnexpected: (error) => unexpected.push(error),
  }
  const stagingRoot = openRoot(folders.staging)
  t.after(() => stagingRoot[Symbol.dispose]())
  mkdirSync(join(folders.staging, folderOf(ENDING.jobId)))
  const staging = openChild(stagingRoot, folderOf(ENDING.jobId))
  t.after(() => staging[Symbol.dispose]())
  const journal = createJournal(staging)
  journal.add('mkdir', { path: ['new'] })
  const { jobId, backupId } = ENDING
  const head = { jobId, backupId, safetyBackupId: null, report: REPORT, trashBatches: [], stagedCount: 0 }
  await journal.commit(head, new Float64Array(0))
  journal.close()
  return {
    target,
    tree,
    unexpected,
    shrinks: () => shrinks,
    staged: () => readdirSync(staging.address),
    finish: (options?: { retries: number }) => finishSwap(target, { stagingRoot, staging }, ENDING, options),
  }
}

/** As if others had all descriptors at the first moment in which a file of this name is read, and never before or after. */
function failToReadOnce(t: TestContext, name: string): void {
  const { readFileSync } = fs
  const restore = () => {
    fs.readFileSync = readFileSync
    syncBuiltinESMExports()
  }
  fs.readFileSync = ((...args: Parameters<typeof readFileSync>) => {
    if (!String(args[0]).endsWith(`/${name}`)) return readFileSync(...args)
    restore()
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
  }) as typeof readFileSync
  syncBuiltinESMExports()
  t.after(restore)
}

test('what comes after a restore waits for a descriptor, and its report is told', async (t) => {
  const { finish, unexpected, shrinks, staged } = await committed(t)
  failToReadOnce(t, 'done')
  assert.deepEqual(await finish(), DONE)
  assert.deepEqual([unexpected, shrinks(), staged()], [[], 1, ['done']])
})

test('what could not be done after a restore is told, and the next start does it', async (t) => {
  const { target, finish, unexpected, shrinks, staged } = await committed(t)
  failToReadOnce(t, 'done')
  assert.deepEqual(await finish({ retries: 0 }), DONE)
  assert.deepEqual([unexpected.length, shrinks(), staged().includes('displace')], [1, 0, true])
  await recoverRestores(target)
  assert.deepEqual([unexpected.length, shrinks(), staged()], [1, 1, ['done']])
})

test('trash that cannot be freed for want of a descriptor is freed later', async (t) => {
  const { target, finish, unexpected, shrinks, staged } = await committed(t)
  const { shrink } = target.usage
  target.usage.shrink = () => Promise.reject(Object.assign(new Error('EMFILE'), { code: 'EMFILE' }))
  assert.deepEqual(await finish({ retries: 0 }), DONE)
  target.usage.shrink = shrink
  assert.deepEqual([unexpected.length, staged().includes('displace')], [1, true])
  await recoverRestores(target)
  assert.deepEqual([shrinks(), staged()], [1, ['done']])
})

test('a report that cannot be read for want of a descriptor is not taken for lost', async (t) => {
  const { target, finish } = await committed(t)
  await finish()
  failToReadOnce(t, 'done')
  assert.throws(() => readOutcome(target, ENDING.jobId), { code: 'EMFILE' })
  assert.deepEqual(readOutcome(target, ENDING.jobId), DONE)
})

test('one that stops for want of descriptors names its backup, and holds no other trash', {
  skip: cannotRunOut,
}, async (t) => {
  const { target, tree, finish } = await committed(t)
  const { error } = await whileFew('at once', 0, () => finish({ retries: 0 }))
  assert.equal((error as { code?: string }).code, 'restore_unfinished')
  assert.equal(target.gate.stopped()?.backupId, ENDING.backupId)
  assert.equal(target.gate.holds('trs_other'), false)
  assert.deepEqual(await finish(), DONE)
  assert.deepEqual([tree(), target.gate.stopped()], [['new'], undefined])
})
