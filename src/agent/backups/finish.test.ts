// Restores that have stopped in the middle, finished in both directions and killed before each change of that: whatever
// the instant, the next start goes on in the direction that was chosen, and every byte is in the tree or in the trash.
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
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
import { describe, it } from 'node:test'
import { withImmutable, withoutImmutable } from '../../../test/support/immutable.ts'
import { newId } from '../../kit/ids.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, type Tree, temporaryFolder } from './backups.testing.ts'
import { killDuring } from './killed.testing.ts'

const SERVER = 'srv_a'

/** As the backup has it: a file to replace, one to keep with another mode, a directory to make, a link and a lone file. */
function fillOld(root: string): void {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(join(root, 'n'), { recursive: true })
  mkdirSync(join(root, 'z'))
  for (const name of ['a', 'keep', 'n/m', 'z/x']) writeFileSync(join(root, name), `old ${name}`)
  linkSync(join(root, 'n/m'), join(root, 'z/link'))
  chmodSync(join(root, 'keep'), 0o640)
}

/** As it is before the restore. */
function fillNew(root: string): void {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(join(root, 'z'), { recursive: true })
  mkdirSync(join(root, 'made'))
  for (const name of ['a', 'made/inside']) writeFileSync(join(root, name), `new ${name}`)
  writeFileSync(join(root, 'keep'), 'old keep')
  chmodSync(join(root, 'keep'), 0o600)
  for (const name of ['z', 'made']) utimesSync(join(root, name), 1_600_000_000, 1_600_000_000)
}

/** What every file in the trash holds, sorted. */
function trashed(dataDir: string): string[] {
  const trash = join(dataDir, 'servers', SERVER, 'trash')
  return readdirSync(trash, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'record.json')
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .sort()
}

interface Stopped {
  root: string
  jobId: string
  before: Tree
  wanted: Tree
}

/** `stopAt` is made immutable while the restore runs. */
async function stopRestore(agent: TestAgent, stopAt: string): Promise<Stopped> {
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

async function finish(agent: TestAgent, jobId: string, direction: 'forward' | 'back'): Promise<void> {
  await agent.run({ kind: 'backups.finishRestore', jobId, direction }, SERVER)
}

const without = (tree: Tree, ...paths: string[]): Tree =>
  Object.fromEntries(Object.entries(tree).filter(([path]) => !paths.includes(path)))

describe('a restore that has stopped', { skip: withoutImmutable() }, () => {
  it('is what the backup has after forward, wherever it stopped', async (t) => {
    const agent = await startAgent(temporaryFolder(t))
    for (const stopAt of ['a', 'z', 'keep']) {
      const { root, jobId, wanted } = await stopRestore(agent, stopAt)
      await finish(agent, jobId, 'forward')
      assertSameTree(snapshot(root), wanted)
      assert.deepEqual(trashed(agent.dataDir), ['new a', 'new made/inside'])
      await finish(agent, jobId, 'forward')
      assertSameTree(snapshot(root), wanted)
    }
    await agent.stop()
  })

  it('is what it was before after back, wherever it stopped, modes and times included', async (t) => {
    const agent = await startAgent(temporaryFolder(t))
    for (const stopAt of ['a', 'z', 'keep']) {
      const { root, jobId, before } = await stopRestore(agent, stopAt)
      await finish(agent, jobId, 'back')
      assertSameTree(snapshot(root), before)
      assert.deepEqual(trashed(agent.dataDir), [])
    }
    await agent.stop()
  })

  it('can go forward after it went back half of the way, and the other way round', async (t) => {
    const agent = await startAgent(temporaryFolder(t))
    const { root, jobId, wanted } = await stopRestore(agent, 'keep')
    const half = (at: string, direction: 'forward' | 'back') =>
      withImmutable(join(root, at), () =>
        assert.rejects(finish(agent, jobId, direction), { code: 'restore_unfinished' }),
      )
    await half('z', 'back')
    await half('keep', 'forward')
    await half('n', 'back')
    await finish(agent, jobId, 'forward')
    assertSameTree(snapshot(root), wanted)
    assert.deepEqual(trashed(agent.dataDir), ['new a', 'new made/inside'])
    const other = await stopRestore(agent, 'keep')
    await withImmutable(join(root, 'z'), () => assert.rejects(finish(agent, other.jobId, 'back')))
    await finish(agent, other.jobId, 'back')
    assertSameTree(snapshot(root), other.before)
    assert.deepEqual(trashed(agent.dataDir), [])
    await agent.stop()
  })

  it('keeps what was changed after it was placed in the trash when it goes back', async (t) => {
    const agent = await startAgent(temporaryFolder(t))
    const { root, jobId, before } = await stopRestore(agent, 'keep')
    changePlaced(root)
    await finish(agent, jobId, 'back')
    assertSameTree(without(snapshot(root), '/n', '/n/own'), before)
    assert.equal(readFileSync(join(root, 'n/own'), 'utf8'), 'newer own')
    assert.deepEqual(trashed(agent.dataDir), ['newer a', 'newer m'])
    await agent.stop()
  })

  it('is not touched by a start, and its trash is not emptied', async (t) => {
    const folder = temporaryFolder(t)
    const agent = await startAgent(folder, { now: () => Date.now() })
    const { root, jobId, wanted } = await stopRestore(agent, 'z')
    const stoppedTree = snapshot(root)
    await agent.stop()
    const again = await startAgent(folder)
    assertSameTree(snapshot(root), stoppedTree)
    assert.equal((await again.backups.stoppedRestore({ serverId: SERVER }))?.jobId, jobId)
    await again.files.emptyTrash({ serverId: SERVER })
    await assert.rejects(again.create(SERVER), { code: 'server_busy' })
    await finish(again, jobId, 'forward')
    assertSameTree(snapshot(root), wanted)
    assert.deepEqual(trashed(folder), ['new a', 'new made/inside'])
    await again.stop()
  })

  it('becomes one by a start that cannot go on, and the agent starts', async (t) => {
    const folder = temporaryFolder(t)
    const agent = await startAgent(folder)
    const root = agent.filesOf(SERVER)
    fillOld(root)
    const { backupId } = await agent.create(SERVER)
    const wanted = snapshot(root)
    await agent.stop()
    fillNew(root)
    const jobId = newId('job')
    const work = { jobId, backupId, sourceServerId: SERVER, mode: 'replace', paths: null } as const
    const hasCommitted = () => existsSync(join(folder, 'servers', SERVER, 'staging', `restore-${jobId}/forward`))
    for (let atChange = 1; !hasCommitted(); atChange++) {
      const isDone = await killDuring(folder, SERVER, { kind: 'backups.restore', ...work }, { afterMs: 5000, atChange })
      assert.equal(isDone, false)
    }
    const problems: unknown[] = []
    await withImmutable(join(root, 'keep'), async () => {
      const halted = await startAgent(folder, { onUnexpected: (error) => void problems.push(error) })
      assert.equal((await halted.backups.stoppedRestore({ serverId: SERVER }))?.path, '/keep')
      await halted.stop()
    })
    assert.equal(problems.length, 1)
    const last = await startAgent(folder)
    await assert.rejects(last.restore(SERVER, backupId, work), { code: 'restore_unfinished' })
    await finish(last, jobId, 'forward')
    assertSameTree(snapshot(root), wanted)
    // Asked for again, as control does that has not heard of it: what came of it is told, and nothing is done.
    writeFileSync(join(root, 'a'), 'newer')
    assert.equal((await last.restore(SERVER, backupId, work)).filesRestored, 4)
    assert.equal(readFileSync(join(root, 'a'), 'utf8'), 'newer')
    await last.stop()
  })

  for (const direction of ['forward', 'back'] as const) {
    it(`killed before any change on its way ${direction}, goes on at the next start`, async (t) => {
      const folder = temporaryFolder(t)
      let resumed = 0
      let agent = await startAgent(folder)
      for (let atChange = 1, isDone = false; !isDone; atChange++) {
        const { root, jobId, before, wanted } = await stopRestore(agent, direction === 'forward' ? 'a' : 'keep')
        await agent.stop()
        if (direction === 'forward') writeInTheWay(root)
        else changePlaced(root)
        const work = { kind: 'backups.finishRestore', jobId, direction } as const
        isDone = await killDuring(folder, SERVER, work, { afterMs: 10_000, atChange })
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
      assert.ok(resumed > 8, `${resumed}`)
    })
  }
})

/** A game in the middle of a restore that has not placed anything yet. */
function writeInTheWay(root: string): void {
  writeFileSync(join(root, 'n'), 'newer n')
  writeFileSync(join(root, 'z/x'), 'newer x')
}

/** A game that goes on with what a restore has placed: writes in place, replaces, and adds. */
function changePlaced(root: string): void {
  writeFileSync(join(root, 'n/m'), 'newer m')
  writeFileSync(join(root, 'n/own'), 'newer own')
  const { mode } = statSync(join(root, 'a'))
  writeFileSync(join(root, 'a.tmp'), 'newer a', { mode })
  renameSync(join(root, 'a.tmp'), join(root, 'a'))
}
