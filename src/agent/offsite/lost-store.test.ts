// A disk that loses what nobody has deleted: nothing that the mirror has of it goes, what can be is read from there again, and
// nothing is said to be stored that is not.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { openLocalStore } from '../../blobs/local.ts'
import { flip, namesIn } from '../../blobs/store.testing.ts'
import {
  assertSameTree,
  snapshot,
  startAgent,
  type TestAgent,
  type Tree,
  temporaryFolder,
} from '../backups/backups.testing.ts'
import { backups, remove, SERVER, type TestMirror, testMirror } from './mirror.testing.ts'

const WEEK_MS = 7 * 24 * 3600_000
const idsOf = (named: { backupId: string }[]) => named.map(({ backupId }) => backupId).sort()

async function startWithCopy(t: TestContext, dataDir: string, dir: string): Promise<TestAgent> {
  mkdirSync(dir, { recursive: true })
  const options = { blockHash: 'sha-256', offsite: () => openLocalStore(dir, { clear: false }) } as const
  const agent = await startAgent(dataDir, options)
  t.after(() => agent.stop())
  return agent
}

/** Three backups that are in the mirror, then `lose`, then a service that is started anew. */
async function afterLoss(t: TestContext, lose: (storeDir: string) => void) {
  const [dataDir, dir] = [temporaryFolder(t), join(temporaryFolder(t), 'bucket')]
  const before = await testMirror(t, { dir, agent: await startWithCopy(t, dataDir, dir) })
  const trees = await backups(before, 3)
  await before.run({ isThorough: true })
  const sent = ['packs', 'index', 'manifests'].map((folder) => namesIn(dir, folder))
  await before.agent.stop()
  lose(before.agent.storeDir)
  const mirror = await testMirror(t, { dir, agent: await startWithCopy(t, dataDir, dir) })
  return {
    mirror,
    trees,
    dir,
    isAllThere: () =>
      assert.deepEqual(
        ['packs', 'index', 'manifests'].map((folder) => namesIn(dir, folder)),
        sent,
      ),
  }
}

async function assertAllRestore({ agent }: TestMirror, trees: ReadonlyMap<string, Tree>): Promise<void> {
  for (const [backupId, tree] of trees) {
    await agent.restore(SERVER, backupId)
    assertSameTree(snapshot(agent.filesOf(SERVER)), tree)
  }
}

function removePack(storeDir: string, packId: string): void {
  rmSync(join(storeDir, 'packs', packId.slice(0, 2), packId))
}

it('a pack that is lost together with the index that lists it stays in the mirror, and is read from there', async (t) => {
  for (const confirmedBytes of [null, 1e12]) {
    const { mirror, trees, isAllThere } = await afterLoss(t, (storeDir) => {
      // Of the first backup: names sort by time.
      const [index = ''] = readdirSync(join(storeDir, 'index')).sort()
      rmSync(join(storeDir, 'index', index))
      for (const packId of namesIn(storeDir, 'packs')) removePack(storeDir, packId)
    })
    const report = await mirror.run({ isThorough: true, confirmedBytes })
    isAllThere()
    assert.equal(report.surplus, null)
    assert.deepEqual(idsOf(report.stored), [...trees.keys()].sort())
    assert.deepEqual(report.lacking, [])
    await assertAllRestore(mirror, trees)
  }
})

it('a store that has lost all its packs and indexes has its backups again after the next run', async (t) => {
  const { mirror, trees, isAllThere } = await afterLoss(t, (storeDir) => {
    for (const folder of ['packs', 'index']) rmSync(join(storeDir, folder), { recursive: true })
  })
  assert.equal((await mirror.run({ isThorough: true, confirmedBytes: 1e12 })).removed.blobs, 0)
  isAllThere()
  await assertAllRestore(mirror, trees)
})

it('while indexes that are lost here cannot be read there either, no confirmation removes a pack', async (t) => {
  const { mirror, dir } = await afterLoss(t, (storeDir) => {
    for (const folder of ['packs', 'index']) rmSync(join(storeDir, folder), { recursive: true })
  })
  for (const name of namesIn(dir, 'index')) truncateSync(join(dir, 'index', name), 40)
  const packs = namesIn(dir, 'packs')
  const report = await mirror.run({ isThorough: true, confirmedBytes: 1e12 })
  assert.deepEqual(namesIn(dir, 'packs'), packs)
  assert.equal(report.surplus?.reason, 'store_incomplete')
})

for (const [how, spoil] of [
  ['lost', (path: string) => rmSync(path)],
  ['cut short', (path: string) => truncateSync(path, 5000)],
  ['damaged', (path: string) => flip(path, 100_000)],
] as const)
  it(`a backup of which a pack is ${how} before it was sent is not sent, and is not said to be stored`, async (t) => {
    const dir = join(temporaryFolder(t), 'bucket')
    const mirror = await testMirror(t, { dir, agent: await startWithCopy(t, temporaryFolder(t), dir) })
    const [sound = ''] = (await backups(mirror, 1)).keys()
    await mirror.run()
    const before = namesIn(mirror.agent.storeDir, 'packs')
    const [hurt = ''] = (await backups(mirror, 1)).keys()
    const [pack = ''] = namesIn(mirror.agent.storeDir, 'packs').filter((name) => !before.includes(name))
    spoil(join(mirror.agent.storeDir, 'packs', pack.slice(0, 2), pack))
    const [later = ''] = (await backups(mirror, 1)).keys()
    for (const isThorough of [false, true]) {
      const report = await mirror.run({ isThorough })
      assert.deepEqual(idsOf(report.stored), isThorough ? [sound, later].sort() : [later])
      assert.deepEqual(idsOf(report.lacking), [hurt])
    }
    assert.deepEqual(namesIn(dir, 'manifests'), [sound, later].sort())
    assert.ok(!namesIn(dir, 'packs').includes(pack))
  })

it('a backup whose packs were only in the mirror, and are gone there, is not stored any more', async (t) => {
  const dir = join(temporaryFolder(t), 'bucket')
  const agent = await startWithCopy(t, temporaryFolder(t), dir)
  const mirror = await testMirror(t, { dir, agent, keepLocal: { bytes: 0 } })
  const ids = [...(await backups(mirror, 3)).keys()]
  assert.deepEqual(idsOf((await mirror.run({ isThorough: true })).stored), ids.toSorted())
  const [away = ''] = namesIn(dir, 'packs').filter((name) => !namesIn(agent.storeDir, 'packs').includes(name))
  removePack(dir, away)
  const report = await mirror.run({ isThorough: true })
  assert.equal(report.lacking.length, 1)
  assert.deepEqual([...idsOf(report.stored), ...idsOf(report.lacking)].sort(), ids.toSorted())
  // Nor in another place, to which what is away cannot be sent.
  const elsewhere = await testMirror(t, { dir: join(temporaryFolder(t), 'other'), agent, place: 'another bucket' })
  const there = await elsewhere.run({ isThorough: true })
  assert.deepEqual(idsOf(there.stored), namesIn(elsewhere.dir, 'manifests'))
  assert.deepEqual([...idsOf(there.stored), ...idsOf(there.lacking)].sort(), ids.toSorted())
  assert.ok(there.lacking.length >= 2)
})

it('where nothing would be removed, no manifest is read to find out what may be', async (t) => {
  const mirror = await testMirror(t, { isAppendOnly: true })
  const [first = ''] = (await backups(mirror, 3)).keys()
  await mirror.run({ isThorough: true })
  await remove(mirror, first)
  const { blobs } = await mirror.agent.backups.repository()
  const opened = t.mock.method(blobs, 'stat')
  assert.equal((await mirror.run({ deletedBackups: [first] })).surplus?.reason, 'append_only')
  assert.deepEqual(
    opened.mock.calls.map(({ arguments: [name] }) => name).filter((name) => name.startsWith('manifests/')),
    [],
  )
})

it('a store that was made anew with a key is not sent to where one without is', async (t) => {
  const [dataDir, dir] = [temporaryFolder(t), join(temporaryFolder(t), 'bucket')]
  const before = await testMirror(t, { dir, agent: await startWithCopy(t, dataDir, dir) })
  await backups(before, 1)
  await before.run()
  await before.agent.stop()
  renameSync(before.agent.storeDir, join(temporaryFolder(t), 'aside'))
  const agent = await startAgent(dataDir, { key: randomBytes(32), blockHash: 'sha-256' })
  t.after(() => agent.stop())
  const mirror = await testMirror(t, { dir, agent })
  await backups(mirror, 1)
  await assert.rejects(mirror.run({ isThorough: true }), { code: 'offsite_taken' })
  assert.equal(namesIn(dir, 'manifests').length, 1)
})

it('what the mirror holds counts also where nobody has noted it for a week, or by another name of the place', async (t) => {
  let now = Date.now()
  const first = await testMirror(t, { now: () => now })
  const ids = [...(await backups(first, 5)).keys()]
  await first.run()
  now += WEEK_MS + 1
  await remove(first, ...ids.slice(0, 4))
  const { agent, dir } = first
  for (const mirror of [
    first,
    await testMirror(t, { agent, dir, now: () => now, place: 'the same, spelled otherwise' }),
  ]) {
    mirror.restart()
    const report = await mirror.run({ isThorough: true, deletedBackups: ids })
    assert.equal(report.surplus?.reason, 'shrinks')
  }
})
