// Manifests that share parts, through everything that is done with backups.
import assert from 'node:assert/strict'
import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { blobsIn, flip } from '../../blobs/store.testing.ts'
import { newId } from '../../kit/ids.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, type Tree, temporaryFolder } from './backups.testing.ts'
import { openManifest } from './format/manifest.ts'
import { killDuring } from './mishaps/killed.testing.ts'
import { type Bucket, mirror, openBucket } from './offsite.testing.ts'
import { findStore, listStore, takeOver } from './store/recovered-store.ts'

const SERVER = 'srv_a'

interface Scene {
  agent: TestAgent
  bucket: Bucket
  root: string
  /** Of the two backups that share a part, in order. */
  trees: Map<string, Tree>
  /** The part that both name. */
  part: string
  healed: string[]
}

function fill(root: string): void {
  for (let index = 0; index < 60; index++) writeFileSync(join(root, `file ${100 + index}`), `content ${index}`)
}

const untilSettled = () => new Promise((resolve) => setTimeout(resolve, 1100))

async function scene(t: TestContext): Promise<Scene> {
  const bucket = openBucket(temporaryFolder(t))
  const healed: string[] = []
  const onHealed = ({ blob }: { blob: string }) => void healed.push(blob)
  const agent = await startAgent(temporaryFolder(t), { offsite: bucket.open, onHealed })
  t.after(() => agent.stop())
  const root = agent.filesOf(SERVER)
  fill(root)
  await untilSettled()
  const trees = new Map<string, Tree>()
  await backUp(agent, root, trees)
  const [part = ''] = blobsIn(agent.storeDir, 'parts')
  writeFileSync(join(root, 'file 110'), 'changed')
  await backUp(agent, root, trees)
  mirror(agent, bucket)
  return { agent, bucket, root, trees, part, healed }
}

async function backUp(agent: TestAgent, root: string, trees: Map<string, Tree>): Promise<string> {
  const tree = snapshot(root)
  const { backupId } = await agent.create(SERVER)
  trees.set(backupId, tree)
  return backupId
}

async function assertWhole(agent: TestAgent, trees: ReadonlyMap<string, Tree>): Promise<void> {
  const target = agent.filesOf('srv_target')
  for (const [backupId, tree] of trees) {
    await agent.restore('srv_target', backupId, { sourceServerId: SERVER })
    assertSameTree(snapshot(target), tree)
    assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId }, SERVER)).damage, [])
  }
}

/** Those that a manifest names. */
async function partsNamed({ backups }: TestAgent): Promise<Set<string>> {
  const { blobs, sealer } = await backups.repository()
  const named = new Set<string>()
  for (const { serverId, backupId } of await backups.list({ serverId: null }))
    for (const { id } of (await openManifest(blobs, sealer, { serverId, backupId })).parts) named.add(id)
  return named
}

const partsThere = (agent: TestAgent) =>
  blobsIn(agent.storeDir, 'parts')
    .map((path) => path.slice(-32))
    .sort()

it('deleting one of two backups that share a part leaves the other whole; a reclaim takes what no manifest names', async (t) => {
  const { agent, trees, part, root } = await scene(t)
  const [first = '', second = ''] = trees.keys()
  await agent.backups.remove({ serverId: SERVER, backupId: first })
  trees.delete(first)
  await agent.run({ kind: 'backups.reclaim' })
  assert.ok(blobsIn(agent.storeDir, 'parts').includes(part))
  await assertWhole(agent, trees)
  for (let index = 0; index < 60; index++) writeFileSync(join(root, `file ${100 + index}`), `other ${index}`)
  await backUp(agent, root, trees)
  await agent.backups.remove({ serverId: SERVER, backupId: second })
  trees.delete(second)
  const { freedBytes } = await agent.run({ kind: 'backups.reclaim' })
  assert.ok(freedBytes > 0)
  assert.ok(!blobsIn(agent.storeDir, 'parts').includes(part))
  assert.deepEqual(partsThere(agent), [...(await partsNamed(agent))].sort())
  await assertWhole(agent, trees)
})

it('A backup that is under way may count on the parts of the one before, also while that is deleted: no reclaim begins until it has ended.', async (t) => {
  const folder = temporaryFolder(t)
  const first = await startAgent(folder)
  const root = first.filesOf(SERVER)
  fill(root)
  await untilSettled()
  const { backupId } = await first.create(SERVER)
  await first.stop()
  let reclaimed: Promise<unknown> = Promise.resolve()
  let isReclaimed = false
  const deletePrevious = async () => {
    await agent.backups.remove({ serverId: SERVER, backupId })
    reclaimed = agent.run({ kind: 'backups.reclaim' }).then(() => {
      isReclaimed = true
    })
    return {
      release: async () => {
        assert.equal(isReclaimed, false)
        return { how: 'idle' as const, heldMs: null, warnings: [] }
      },
    }
  }
  const agent = await startAgent(folder, { games: { requireStopped: () => {}, holdWorld: deletePrevious } })
  t.after(() => agent.stop())
  const [part = ''] = blobsIn(agent.storeDir, 'parts')
  const trees = new Map<string, Tree>()
  await backUp(agent, root, trees)
  await reclaimed
  assert.ok(blobsIn(agent.storeDir, 'parts').includes(part), 'the part of the deleted backup is used')
  await assertWhole(agent, trees)
})

it('A damaged chunk of a part is damage of every backup that names it.', async (t) => {
  const { agent, bucket, trees, part } = await scene(t)
  bucket.breakAfter(0)
  flip(part, 20)
  const [first = '', second = ''] = trees.keys()
  for (const work of [
    { kind: 'backups.verify', backupId: first } as const,
    { kind: 'backups.scrub', share: 1 } as const,
  ]) {
    const { damage } = await agent.run(work, SERVER)
    assert.deepEqual(
      damage.map(({ blob, touches }) => [part.endsWith(blob), touches.map(({ backupId }) => backupId).sort()]),
      [[true, [first, second].sort()]],
    )
  }
  agent.filesOf('srv_target')
  await assert.rejects(agent.restore('srv_target', second, { sourceServerId: SERVER }), { code: 'backup_damaged' })
  await assert.rejects(agent.run({ kind: 'backups.reclaim' }), { code: 'backup_damaged' })
  const listed = await agent.backups.list({ serverId: SERVER, isThorough: true })
  assert.ok(listed.length === 2 && listed.every(({ damage }) => damage?.includes('parts/')))
})

it('writes it to a part again: if nothing of it has changed, that is the same chunk, and every backup that names it is whole again.', async (t) => {
  const { agent, bucket, root, trees, part } = await scene(t)
  bucket.breakAfter(0)
  flip(part, 20)
  await backUp(agent, root, trees)
  const target = agent.filesOf('srv_target')
  const restoreAll = async () => {
    for (const [backupId, tree] of trees) {
      await agent.restore('srv_target', backupId, { sourceServerId: SERVER })
      assertSameTree(snapshot(target), tree)
    }
  }
  await restoreAll()
  // The one that holds it now is kept though its own backup goes.
  const [, , third = ''] = trees.keys()
  await agent.backups.remove({ serverId: SERVER, backupId: third })
  trees.delete(third)
  bucket.mend()
  rmSync(join(bucket.dir, 'parts'), { recursive: true })
  await agent.run({ kind: 'backups.reclaim' })
  await restoreAll()
  const { damage } = await agent.run({ kind: 'backups.scrub', share: 1 })
  assert.deepEqual(
    damage.map(({ blob, touches }) => [part.endsWith(blob), touches]),
    [[true, []]],
  )
})

it('a part that is damaged or lost is put in place again by whatever reads it', async (t) => {
  const { agent, trees, part, healed } = await scene(t)
  const whole = readFileSync(part)
  const [backupId = ''] = trees.keys()
  const work = { serverId: SERVER, backupId }
  const readers = [
    () => agent.backups.browse({ ...work, path: '/', limit: 100, after: null }),
    () => agent.run({ kind: 'backups.verify', backupId }, SERVER),
    () => agent.run({ kind: 'backups.scrub', share: 1 }),
    () => agent.run({ kind: 'backups.reclaim' }),
    () => agent.restore(SERVER, backupId),
  ]
  const spoils = [() => flip(part, 20), () => rmSync(part), () => flip(part, whole.length - 60)]
  for (const [count, read] of readers.entries())
    for (const spoil of spoils.slice(0, count === 1 || count === 2 ? 3 : 2)) {
      spoil()
      await read()
      assert.ok(readFileSync(part).equals(whole), `reader ${count}`)
    }
  assert.ok(healed.length > 0 && healed.every((blob) => part.endsWith(blob)))
  const manifest = join(agent.storeDir, 'manifests', SERVER, backupId)
  rmSync(manifest)
  rmSync(part)
  assert.equal((await agent.backups.heal(work))?.backup?.backupId, backupId)
  assert.ok(readFileSync(part).equals(whole))
})

it('A backup that is killed at any step leaves every other whole, and what it left is given back.', async (t) => {
  const { agent, root, trees } = await scene(t)
  await agent.stop()
  const folder = agent.dataDir
  let steps = 0
  for (let isDone = false; !isDone; ) {
    for (const number of [103, 125, 150]) writeFileSync(join(root, `file ${number}`), `step ${steps}`)
    const tree = snapshot(root)
    const request = { name: 'doomed', createdAt: Date.now(), ignored: '', isLocked: false }
    const backupId = newId('bkp')
    const work = { kind: 'backups.create', backupId, ...request } as const
    isDone = await killDuring(folder, SERVER, work, { atStep: ++steps })
    const again = await startAgent(folder)
    const there = (await again.backups.list({ serverId: SERVER, isThorough: true })).map((one) => one.backupId)
    if (there.includes(backupId)) trees.set(backupId, tree)
    assert.deepEqual(there.sort(), [...trees.keys()].sort())
    await again.run({ kind: 'backups.reclaim' })
    assert.deepEqual(partsThere(again), [...(await partsNamed(again))].sort())
    if (isDone) await assertWhole(again, trees)
    await again.stop()
  }
  assert.ok(steps > 4, `killed at ${steps - 1} steps`)
})

it('a backup that is cancelled leaves no part', async (t) => {
  const agent = await startAgent(temporaryFolder(t), {
    games: {
      requireStopped: () => {},
      holdWorld: async () => ({
        release: async () => {
          // Everything is read by now, and the part is being written.
          cancel.abort(new Error('cancelled'))
          return { how: 'idle', heldMs: null, warnings: [] }
        },
      }),
    },
  })
  t.after(() => agent.stop())
  const cancel = new AbortController()
  fill(agent.filesOf(SERVER))
  const request = { name: 'cancelled', createdAt: Date.now(), ignored: '', isLocked: false }
  const work = { kind: 'backups.create', backupId: newId('bkp'), ...request } as const
  await assert.rejects(agent.run(work, SERVER, cancel.signal), /cancelled/)
  assert.deepEqual([...blobsIn(agent.storeDir, 'parts'), ...readdirSync(join(agent.storeDir, '.unfinished'))], [])
})

it('files with several links are described anew, and share what they were listed in all the same', async (t) => {
  const agent = await startAgent(temporaryFolder(t))
  t.after(() => agent.stop())
  const root = agent.filesOf(SERVER)
  fill(root)
  for (let index = 0; index < 60; index += 2)
    linkSync(join(root, `file ${100 + index}`), join(root, `link ${100 + index}`))
  await untilSettled()
  const trees = new Map<string, Tree>()
  await backUp(agent, root, trees)
  const parts = partsThere(agent)
  await backUp(agent, root, trees)
  assert.deepEqual(partsThere(agent), parts)
  await assertWhole(agent, trees)
})

it('a store that is taken over brings its parts, and makes the own store one that has them', async (t) => {
  const { agent, trees } = await scene(t)
  await agent.stop()
  const other = await startAgent(temporaryFolder(t), { manifestSizes: undefined, blockHash: blockHashOf(agent) })
  writeFileSync(join(other.filesOf('srv_other'), 'file'), 'small')
  const own = await other.create('srv_other')
  await other.stop()
  const found = await findStore(agent.storeDir, null)
  const listed = await listStore(found)
  assert.ok(listed.length === 2 && listed.every(({ damage }) => damage === null))
  await takeOver(found, listed, other.storeDir, () => {})
  assert.equal(formatOf(other).version, 2)
  const again = await startAgent(other.dataDir)
  t.after(() => again.stop())
  await assertWhole(again, trees)
  assert.equal((await again.backups.list({ serverId: 'srv_other' }))[0]?.backupId, own.backupId)
})

const formatOf = ({ storeDir }: TestAgent) => JSON.parse(readFileSync(join(storeDir, 'format'), 'utf8'))
const blockHashOf = (agent: TestAgent) => formatOf(agent).blockHash
