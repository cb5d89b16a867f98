// What the disk has lost or spoilt is put in place again from the off-site store, whatever finds it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { it, type TestContext } from 'node:test'
import { until } from '../../../../test/support/until.ts'
import { blobsIn, flip } from '../../../blobs/store.testing.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, temporaryFolder } from '../backups.testing.ts'
import { type Bucket, leaveAll, mirror, openBucket } from '../offsite.testing.ts'
import { killDuring } from './killed.testing.ts'

interface Scene {
  agent: TestAgent
  bucket: Bucket
  backupId: string
  /** Of `srv_a` when it was backed up. */
  tree: ReturnType<typeof snapshot>
  /** The only one. */
  pack: string
  healed: { blob: string; serverId: string | null }[]
}

async function scene(t: TestContext): Promise<Scene> {
  const bucket = openBucket(temporaryFolder(t))
  const healed: Scene['healed'] = []
  const onHealed = (one: Scene['healed'][number]) => void healed.push(one)
  const agent = await startAgent(temporaryFolder(t), { offsite: bucket.open, onHealed })
  t.after(() => agent.stop())
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'random'), randomBytes(300_000))
  writeFileSync(join(root, 'text'), 'some text '.repeat(40_000))
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  const [pack = ''] = blobsIn(agent.storeDir, 'packs')
  return { agent, bucket, backupId, tree: snapshot(root), pack, healed }
}

const isSame = (path: string, bytes: Buffer) => readFileSync(path).equals(bytes)
const damageOf = (agent: TestAgent) => blobsIn(agent.storeDir, 'state').filter((path) => path.endsWith('damage'))

const READERS: Record<string, (scene: Scene) => Promise<void>> = {
  async restore({ agent, backupId, tree }) {
    const target = agent.filesOf('srv_b')
    await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
    assertSameTree(snapshot(target), tree)
  },
  async 'reading a file'({ agent, backupId }) {
    const { stream } = await agent.backups.readFile({ serverId: 'srv_a', backupId, path: '/random' })
    assert.ok((await buffer(stream)).equals(readFileSync(join(agent.filesOf('srv_a'), 'random'))))
  },
  async download({ agent, backupId }) {
    const request = { serverId: 'srv_a', backupId, format: 'tar.gz', signal: new AbortController().signal } as const
    const { stream } = await agent.backups.download(request)
    assert.ok((await buffer(stream)).length > 300_000)
  },
  async verify({ agent, backupId, pack }) {
    const { damage, healed } = await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')
    assert.deepEqual(damage, [])
    assert.ok(healed.length === 1 && pack.endsWith(healed[0] ?? 'none'))
  },
  async scrub({ agent, pack }) {
    const { damage, healed } = await agent.run({ kind: 'backups.scrub', share: 1 })
    assert.deepEqual(damage, [])
    assert.ok(healed.length === 1 && pack.endsWith(healed[0] ?? 'none'))
  },
}

for (const [reader, read] of Object.entries(READERS)) {
  for (const [what, spoil] of [
    ['a damaged pack', (path: string) => flip(path, 100_000)],
    ['a pack that is gone', (path: string) => rmSync(path)],
  ] as const)
    it(`${reader}: ${what} is read from the off-site store, and is on the disk again`, async (t) => {
      const made = await scene(t)
      const { agent, pack, healed } = made
      const whole = readFileSync(pack)
      spoil(pack)
      await read(made)
      await until(
        async () =>
          blobsIn(agent.storeDir, 'packs').length === 1 && isSame(pack, whole) && damageOf(agent).length === 0,
      )
      if (reader !== 'scrub')
        await until(
          async () => healed.length === 1 && healed[0]?.serverId !== null && pack.endsWith(healed[0]?.blob ?? 'none'),
        )
      assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
      assert.equal((await agent.create('srv_a')).storedBytes, 0, 'nothing counts as damaged any more')
    })
}

it('A manifest that is damaged or lost is put in place again by whatever reads it, and never one that was deleted.', async (t) => {
  const { agent, bucket, backupId, tree, healed } = await scene(t)
  const [manifest = ''] = blobsIn(agent.storeDir, 'manifests')
  const whole = readFileSync(manifest)
  const browse = () => agent.backups.browse({ serverId: 'srv_a', backupId, path: '/', limit: 10, after: null })
  const spoils = [
    () => rmSync(manifest),
    () => flip(manifest, whole.length - 60),
    () => flip(manifest, 20),
    () => writeFileSync(manifest, ''),
  ]
  for (const [count, spoil] of spoils.entries()) {
    spoil()
    assert.equal((await browse()).entries.length, 2)
    assert.ok(isSame(manifest, whole))
    assert.equal(healed.length, count + 1)
  }
  flip(manifest, 20)
  agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(agent.filesOf('srv_b')), tree)
  flip(manifest, 20)
  assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
  rmSync(manifest)
  assert.equal((await agent.backups.heal({ serverId: 'srv_a', backupId }))?.backup?.backupId, backupId)
  rmSync(manifest)
  bucket.breakAfter(0)
  await assert.rejects(agent.backups.heal({ serverId: 'srv_a', backupId }), { code: 'offsite_unreachable' })
  await assert.rejects(browse(), { code: 'not_found' })
  bucket.mend()
  assert.equal(await agent.backups.heal({ serverId: 'srv_a', backupId: 'bkp_never' }), null)
  await agent.backups.remove({ serverId: 'srv_a', backupId })
  await assert.rejects(browse(), { code: 'not_found' })
  assert.equal(await agent.backups.heal({ serverId: 'srv_a', backupId }), null)
  assert.deepEqual(blobsIn(agent.storeDir, 'manifests'), [])
})

it('a manifest whose backup is deleted while it is healed stays deleted', async (t) => {
  const { agent, bucket, backupId } = await scene(t)
  rmSync(blobsIn(agent.storeDir, 'manifests')[0] ?? '')
  bucket.before = async () => {
    bucket.before = async () => {}
    await agent.backups.remove({ serverId: 'srv_a', backupId })
  }
  assert.equal(await agent.backups.heal({ serverId: 'srv_a', backupId }), null)
  assert.deepEqual(blobsIn(agent.storeDir, 'manifests'), [])
})

it('an index that is damaged is put in place again, also one of packs that are only off-site', async (t) => {
  const { agent, bucket, backupId, tree } = await scene(t)
  const [index = ''] = blobsIn(agent.storeDir, 'index')
  const whole = readFileSync(index)
  flip(index, 60)
  const { damage, healed } = await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')
  assert.deepEqual([damage, healed.length], [[], 1])
  assert.ok(isSame(index, whole))
  await leaveAll(agent)
  await agent.stop()
  rmSync(index)
  const again = await startAgent(agent.dataDir, { offsite: bucket.open })
  t.after(() => again.stop())
  again.filesOf('srv_b')
  await again.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(again.filesOf('srv_b')), tree)
})

it('what the off-site store has is checked before it is put in place', async (t) => {
  const { agent, bucket, backupId, pack } = await scene(t)
  const [copy = ''] = blobsIn(bucket.dir, 'packs')
  flip(pack, 100_000)
  const spoilt = readFileSync(pack)
  for (const spoil of [() => flip(copy, 200_000), () => writeFileSync(copy, spoilt), () => rmSync(copy)]) {
    spoil()
    const { damage, healed } = await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')
    assert.ok(damage.length > 0 && healed.length === 0)
    assert.ok(isSame(pack, spoilt))
  }
})

it('damage that was found while the off-site store was away is healed at the next start', async (t) => {
  const { agent, bucket, backupId, pack } = await scene(t)
  const whole = readFileSync(pack)
  flip(pack, 100_000)
  bucket.breakAfter(0)
  assert.equal((await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')).damage.length, 1)
  await agent.stop()
  bucket.mend()
  const again = await startAgent(agent.dataDir, { offsite: bucket.open })
  t.after(() => again.stop())
  await until(async () => isSame(pack, whole) && damageOf(again).length === 0)
})

it('a block that has been stored anew elsewhere since it was read is not written down as damage', async (t) => {
  const { agent, pack } = await scene(t)
  const packId = basename(pack)
  await (await agent.backups.repository()).recordDamage([{ id: randomBytes(32), packId }])
  assert.deepEqual(damageOf(agent), [])
})

it('a pack is healed while backups are made, packs reclaimed and others read it', async (t) => {
  const made = await scene(t)
  const { agent, bucket, backupId, pack } = made
  const root = agent.filesOf('srv_a')
  for (let round = 0; round < 3; round++) {
    writeFileSync(join(root, 'passing'), randomBytes(100_000))
    const { backupId: passing } = await agent.create('srv_a')
    rmSync(join(root, 'passing'))
    mirror(agent, bucket)
    flip(pack, 100_000 + 80_000 * round)
    await agent.backups.remove({ serverId: 'srv_a', backupId: passing })
    agent.filesOf('srv_b')
    const [, , later] = await Promise.all([
      READERS.restore?.(made),
      agent.run({ kind: 'backups.reclaim' }),
      agent.create('srv_a'),
      READERS['reading a file']?.(made),
      agent.run({ kind: 'backups.verify', backupId }, 'srv_a'),
    ])
    // Either it is healed, or the backup has stored the block anew and nobody reads it from there any more.
    await until(async () => damageOf(agent).length === 0)
    assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
    for (const id of [backupId, later.backupId]) await agent.restore('srv_b', id, { sourceServerId: 'srv_a' })
  }
})

it('A process killed at any step of healing, or of leaving the disk, leaves every backup whole.', async (t) => {
  const { agent, bucket, backupId, tree, pack } = await scene(t)
  const whole = readFileSync(pack)
  await agent.stop()
  const store = agent.storeDir
  const works = [
    { work: { kind: 'backups.verify', backupId } as const, prepare: () => flip(pack, 100_000) },
    { work: { kind: 'leave' } as const, prepare: () => {} },
  ]
  for (const { work, prepare } of works) {
    let steps = 0
    for (let isDone = false; !isDone; ) {
      mkdirSync(dirname(pack), { recursive: true })
      writeFileSync(pack, whole)
      rmSync(join(store, 'away'), { recursive: true, force: true })
      rmSync(join(store, 'state'), { recursive: true, force: true })
      prepare()
      isDone = await killDuring(agent.dataDir, 'srv_a', work, { atStep: ++steps, offsiteDir: bucket.dir })
      const again = await startAgent(agent.dataDir, { offsite: bucket.open })
      const target = again.filesOf('srv_b')
      await again.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
      assertSameTree(snapshot(target), tree)
      assert.deepEqual((await again.run({ kind: 'backups.verify', backupId }, 'srv_a')).damage, [])
      assert.equal((await again.backups.store()).packCount, 1)
      await again.stop()
      rmSync(target, { recursive: true })
    }
    assert.ok(steps > 2, `${JSON.stringify(work)}: killed at ${steps - 1} steps`)
  }
})
