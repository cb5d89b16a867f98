// A restore that has stopped in the middle, finished by a process that is killed before one of its changes.
import assert from 'node:assert/strict'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { withImmutable } from '../../../../test/support/immutable.ts'
import { newId } from '../../../kit/ids.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, type Tree } from '../backups.testing.ts'
import { killDuring } from '../mishaps/killed.testing.ts'

export const SERVER = 'srv_a'

/** As the backup has it: a file to replace, one to keep with another mode, a directory to make, a link and a lone file. */
export function fillOld(root: string): void {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(join(root, 'n'), { recursive: true })
  mkdirSync(join(root, 'z'))
  for (const name of ['a', 'keep', 'n/m', 'z/x']) writeFileSync(join(root, name), `old ${name}`)
  linkSync(join(root, 'n/m'), join(root, 'z/link'))
  chmodSync(join(root, 'keep'), 0o640)
}

/** As it is before the restore. */
export function fillNew(root: string): void {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(join(root, 'z'), { recursive: true })
  mkdirSync(join(root, 'made'))
  for (const name of ['a', 'made/inside']) writeFileSync(join(root, name), `new ${name}`)
  writeFileSync(join(root, 'keep'), 'old keep')
  chmodSync(join(root, 'keep'), 0o600)
  for (const name of ['z', 'made']) utimesSync(join(root, name), 1_600_000_000, 1_600_000_000)
}

/** What every file in the trash holds, sorted. */
export function trashed(dataDir: string): string[] {
  const trash = join(dataDir, 'servers', SERVER, 'trash')
  return readdirSync(trash, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'record.json')
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .sort()
}

export interface Stopped {
  root: string
  jobId: string
  before: Tree
  wanted: Tree
}

/** `stopAt` is made immutable while the restore runs. */
export async function stopRestore(agent: TestAgent, stopAt: string): Promise<Stopped> {
  const root = agent.filesOf(SERVER)
  rmSync(join(agent.dataDir, 'servers', SERVER, 'trash'), { recursive: true, force: true })
  fillOld(root)
  const { backupId } = await agent.create(SERVER)
  const wanted = snapshot(root)
  fillNew(root)
  const before = snapshot(root)
  const jobId = newId('job')
  await withImmutable(join(root, stopAt), async () => {
    await assert.rejects(agent.restore(SERVER, backupId, { jobId }), { code: 'restore_unfinished' })
  })
  return { root, jobId, before, wanted }
}

export async function finish(agent: TestAgent, jobId: string, direction: 'forward' | 'back'): Promise<void> {
  await agent.run({ kind: 'backups.finishRestore', jobId, direction }, SERVER)
}

export const without = (tree: Tree, ...paths: string[]): Tree =>
  Object.fromEntries(Object.entries(tree).filter(([path]) => !paths.includes(path)))

/**
 * Kills before the first change and before each `step`-th after it, until a run comes to its end. The next start must go
 * on. Answers how often it has.
 */
export async function killFinishing(folder: string, direction: 'forward' | 'back', step: number): Promise<number> {
  let resumed = 0
  let agent = await startAgent(folder)
  for (let atChange = 1, isDone = false; !isDone; atChange += step) {
    const { root, jobId, before, wanted } = await stopRestore(agent, direction === 'forward' ? 'a' : 'keep')
    await agent.stop()
    if (direction === 'forward') writeInTheWay(root)
    else changePlaced(root)
    const work = { kind: 'backups.finishRestore', jobId, direction } as const
    isDone = await killDuring(folder, SERVER, work, { atChange })
    agent = await startAgent(folder)
    if (await agent.backups.stoppedRestore({ serverId: SERVER })) await finish(agent, jobId, direction)
    else resumed++
    await agent.backups.forgetRestore({ serverId: SERVER, jobId })
    if (direction === 'forward') {
      assertSameTree(snapshot(root), wanted)
      assert.deepEqual(trashed(folder), ['new a', 'new made/inside', 'newer n', 'newer x'], `${atChange}`)
    } else {
      assertSameTree(without(snapshot(root), '/n', '/n/own'), before)
      assert.deepEqual(trashed(folder), ['newer a', 'newer m'], `${atChange}`)
    }
    assert.deepEqual(readdirSync(join(folder, 'servers', SERVER, 'staging')), [])
  }
  await agent.stop()
  return resumed
}

/** A game in the middle of a restore that has not placed anything yet. */
function writeInTheWay(root: string): void {
  writeFileSync(join(root, 'n'), 'newer n')
  writeFileSync(join(root, 'z/x'), 'newer x')
}

/** A game that goes on with what a restore has placed: writes in place, replaces, and adds. */
export function changePlaced(root: string): void {
  writeFileSync(join(root, 'n/m'), 'newer m')
  writeFileSync(join(root, 'n/own'), 'newer own')
  const { mode } = statSync(join(root, 'a'))
  writeFileSync(join(root, 'a.tmp'), 'newer a', { mode })
  renameSync(join(root, 'a.tmp'), join(root, 'a'))
}
