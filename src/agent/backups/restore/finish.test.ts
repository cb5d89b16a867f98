// Restores that have stopped in the middle, finished in both directions and killed before changes of that: whatever the
// instant, the next start goes on in the direction that was chosen, and every byte is in the tree or in the trash. All
// the instants are gone through by `npm run faults -- restore`.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { withImmutable, withoutImmutable } from '../../../../test/support/immutable.ts'
import { newId } from '../../../kit/ids.ts'
import { formatHead, parseHead, type RestoreHead } from '../../restore-state.ts'
import { assertSameTree, snapshot, startAgent, temporaryFolder } from '../backups.testing.ts'
import { ID_BYTES } from '../format/format.ts'
import { killDuring } from '../mishaps/killed.testing.ts'
import {
  changePlaced,
  fillNew,
  fillOld,
  finish,
  killFinishing,
  SERVER,
  stopRestore,
  trashed,
  without,
} from './finish.testing.ts'
import { SECTIONS } from './restore-journal.ts'

/** A tenth of the instants. */
const STEP = 11

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

  it('puts what it restores beside what somebody has put into a directory that it makes, in both directions', async (t) => {
    const agent = await startAgent(temporaryFolder(t))
    const stop = async () => {
      const stopped = await stopRestore(agent, 'a')
      mkdirSync(join(stopped.root, 'n'))
      for (const name of ['own', 'm']) writeFileSync(join(stopped.root, 'n', name), `newer ${name}`)
      return stopped
    }
    const { root, jobId, wanted } = await stop()
    await finish(agent, jobId, 'forward')
    assertSameTree(without(snapshot(root), '/n/own'), wanted)
    assert.equal(readFileSync(join(root, 'n/own'), 'utf8'), 'newer own')
    assert.deepEqual(trashed(agent.dataDir), ['new a', 'new made/inside', 'newer m'])
    const other = await stop()
    await withImmutable(join(root, 'keep'), () => assert.rejects(finish(agent, other.jobId, 'forward')))
    await finish(agent, other.jobId, 'back')
    assertSameTree(without(snapshot(root), '/n', '/n/own', '/n/m'), other.before)
    for (const name of ['own', 'm']) assert.equal(readFileSync(join(root, 'n', name), 'utf8'), `newer ${name}`)
    assert.deepEqual(trashed(agent.dataDir), [])
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
    const work = {
      jobId,
      backupId,
      sourceServerId: SERVER,
      mode: 'replace',
      paths: null,
      safetyBackupId: null,
    } as const
    const hasCommitted = () => existsSync(join(folder, 'servers', SERVER, 'staging', `restore-${jobId}/forward`))
    for (let atChange = 1; !hasCommitted(); atChange += 3) {
      const isDone = await killDuring(folder, SERVER, { kind: 'backups.restore', ...work }, { atChange })
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

  it('of the first format is carried out by the first start of a later version', async (t) => {
    for (const stopAt of ['a', 'z', 'keep']) {
      const folder = temporaryFolder(t)
      const agent = await startAgent(folder)
      const { root, jobId, wanted } = await stopRestore(agent, stopAt)
      await agent.stop()
      const staging = join(folder, 'servers', SERVER, 'staging')
      makeFirstFormat(join(staging, `restore-${jobId}`))
      const later = await startAgent(folder)
      assertSameTree(snapshot(root), wanted)
      assert.deepEqual(trashed(folder), ['new a', 'new made/inside'])
      assert.deepEqual(readdirSync(staging), [])
      assert.equal(await later.backups.stoppedRestore({ serverId: SERVER }), null)
      await later.stop()
    }
  })

  it('of the first format that cannot go on says so, keeps its trash, and goes forward only', async (t) => {
    const folder = temporaryFolder(t)
    const agent = await startAgent(folder)
    const { root, jobId, wanted } = await stopRestore(agent, 'z')
    await agent.stop()
    makeFirstFormat(join(folder, 'servers', SERVER, 'staging', `restore-${jobId}`))
    await withImmutable(join(root, 'z'), async () => {
      const halted = await startAgent(folder, { onUnexpected: () => {} })
      assert.equal((await halted.backups.stoppedRestore({ serverId: SERVER }))?.jobId, jobId)
      await halted.files.emptyTrash({ serverId: SERVER })
      await halted.stop()
    })
    const later = await startAgent(folder)
    await assert.rejects(finish(later, jobId, 'back'), { detail: /can only go forward/ })
    await finish(later, jobId, 'forward')
    assertSameTree(snapshot(root), wanted)
    assert.deepEqual(trashed(folder), ['new a', 'new made/inside'])
    await later.stop()
  })

  it('of the second format can be finished in both directions by a later version', async (t) => {
    const agent = await startAgent(temporaryFolder(t))
    for (const stopAt of ['a', 'z', 'keep']) {
      for (const direction of ['forward', 'back'] as const) {
        const { root, jobId, before, wanted } = await stopRestore(agent, stopAt)
        makeSecondFormat(join(agent.dataDir, 'servers', SERVER, 'staging', `restore-${jobId}`))
        await finish(agent, jobId, direction)
        assertSameTree(snapshot(root), direction === 'forward' ? wanted : before)
      }
    }
    await agent.stop()
  })

  for (const direction of ['forward', 'back'] as const) {
    it(`killed on its way ${direction}, goes on at the next start`, async (t) => {
      assert.ok((await killFinishing(temporaryFolder(t), direction, STEP)) > 1)
    })
  }
})

type Line = Record<string, unknown>

const readLines = (file: string): Line[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** As the version before this one has left it: everything staged under its number. */
function makeSecondFormat(folder: string, strip: (operation: Line) => Line = (operation) => operation): RestoreHead {
  const head = parseHead(readFileSync(join(folder, 'stopped'), 'utf8')) as RestoreHead
  const inside = readLines(join(folder, 'inside'))
  for (const { path, staged, folder: within } of inside) {
    const file = join(folder, `d${within}`, (path as string[]).at(-1) ?? '')
    if (existsSync(file)) renameSync(file, join(folder, String(staged)))
  }
  const digests: RestoreHead['digests'] = { ...head.digests, made: head.digests['made-3'] ?? '' }
  for (const section of SECTIONS.filter((name) => name !== 'inside')) {
    const operations = [...readLines(join(folder, section)), ...(section === 'place' ? inside : [])]
    const text = operations.map(({ folder: _, ...line }) => `${JSON.stringify(strip(line))}\n`).join('')
    writeFileSync(join(folder, section), text)
    digests[section] = createHash('blake2b512').update(text).digest().subarray(0, ID_BYTES).toString('hex')
  }
  for (const name of readdirSync(folder))
    if (/^(d\d+|inside)$/.test(name)) rmSync(join(folder, name), { recursive: true })
  const second: RestoreHead = { ...head, version: 2, digests }
  writeFileSync(join(folder, 'stopped'), formatHead(second))
  return second
}

/** As the first version has left it: one file, `journal`, without inodes, attributes before and made things. */
function makeFirstFormat(folder: string): void {
  const { trashBatches, digests } = makeSecondFormat(folder, ({ inode: _, before: __, ...operation }) => operation)
  writeFileSync(join(folder, 'journal'), formatHead({ version: 1, trashBatches, digests } as RestoreHead))
  for (const name of ['stopped', 'made', 'reason']) rmSync(join(folder, name))
}
