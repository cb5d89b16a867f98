// What a verification has found damaged in the mirror is replaced by what the store has, if that is sound.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { openLocalStore } from '../../blobs/local.ts'
import { blobsIn, flip, namesIn } from '../../blobs/store.testing.ts'
import { startAgent, type TestAgent, type Tree, temporaryFolder, testAgent } from '../backups/backups.testing.ts'
import { assertRestorable, type MirrorOptions, SERVER, type TestMirror, testMirror } from './mirror.testing.ts'

interface Scene {
  mirror: TestMirror
  agent: TestAgent
  trees: Map<string, Tree>
  backupId: string
  verify(agent?: TestAgent): Promise<{ blob: string; isOffsite?: boolean }[]>
}

/** So many that the manifest has a part. */
const MANY = 60

/** One backup, which is in the mirror. */
async function scene(t: TestContext, options: MirrorOptions = {}, files = 0): Promise<Scene> {
  const dir = join(temporaryFolder(t), 'bucket')
  const agent = await testAgent(t, { blockHash: 'sha-256', offsite: () => openLocalStore(dir, { clear: false }) })
  const mirror = await testMirror(t, { ...options, dir, agent })
  writeFileSync(join(agent.filesOf(SERVER), 'region'), randomBytes(300_000))
  for (let index = 0; index < files; index++) writeFileSync(join(agent.filesOf(SERVER), `file ${index}`), `${index}`)
  const { backupId, tree } = await mirror.backup(SERVER)
  await mirror.run()
  const verify: Scene['verify'] = async (by = agent) =>
    (await by.run({ kind: 'backups.verify', backupId, isOffsite: true }, SERVER)).damage
  return { mirror, agent, trees: new Map([[backupId, tree]]), backupId, verify }
}

const fileIn = ({ mirror }: Scene, folder: string) => blobsIn(mirror.dir, folder)[0] ?? ''

for (const folder of ['packs', 'index', 'parts', 'manifests']) {
  for (const [how, spoil] of [
    ['a flipped byte', (path: string) => flip(path, 100)],
    ['one that is cut short', (path: string) => writeFileSync(path, readFileSync(path).subarray(0, 90))],
  ] as const) {
    it(`${folder}: ${how} is named, and replaced by what the disk has`, async (t) => {
      const there = await scene(t, {}, MANY)
      const path = fileIn(there, folder)
      const whole = readFileSync(path)
      spoil(path)
      const damage = await there.verify()
      assert.ok(damage.length > 0 && damage.every(({ blob, isOffsite }) => isOffsite && path.endsWith(blob)))
      const { repaired, damaged, sent } = await there.mirror.run()
      assert.ok(repaired.length === 1 && path.endsWith(repaired[0] ?? 'none'), JSON.stringify({ repaired, damaged }))
      assert.deepEqual(damaged, [])
      assert.equal(sent.bytes, whole.length)
      assert.ok(readFileSync(path).equals(whole))
      assert.deepEqual(await there.verify(), [])
      assert.deepEqual((await there.mirror.run()).repaired, [], 'it is done once')
      await assertRestorable(t, there.mirror.dir, SERVER, there.trees, [there.backupId])
    })
  }
}

it('what is gone from the mirror is sent again', async (t) => {
  const there = await scene(t, {}, MANY)
  for (const folder of ['packs', 'parts']) rmSync(fileIn(there, folder))
  assert.ok((await there.verify()).length > 0)
  assert.equal((await there.mirror.run()).repaired.length, 2)
  await assertRestorable(t, there.mirror.dir, SERVER, there.trees, [there.backupId])
})

it('A pack that a reclaim has written is not missed before it was sent: what it was made of is checked.', async (t) => {
  const there = await scene(t)
  const { mirror, agent } = there
  const root = agent.filesOf(SERVER)
  const kept = randomBytes(20_000)
  writeFileSync(join(root, 'kept'), kept)
  writeFileSync(join(root, 'region'), randomBytes(300_000))
  const second = await mirror.backup(SERVER)
  writeFileSync(join(root, 'region'), randomBytes(300_000))
  const third = await mirror.backup(SERVER)
  await mirror.run()
  await agent.backups.remove({ serverId: SERVER, backupId: second.backupId })
  assert.equal((await agent.run({ kind: 'backups.reclaim' })).packsRewritten, 1)
  const verify = async () =>
    (await agent.run({ kind: 'backups.verify', backupId: third.backupId, isOffsite: true }, SERVER)).damage
  assert.deepEqual(await verify(), [])

  // The only place in the mirror that has it.
  const path = blobsIn(mirror.dir, 'packs').find((pack) => readFileSync(pack).includes(kept)) ?? ''
  flip(path, readFileSync(path).indexOf(kept))
  const named = await verify()
  assert.ok(named.length > 0 && named.every(({ blob, isOffsite }) => isOffsite && path.endsWith(blob)))
  rmSync(path)
  const [fresh = ''] = blobsIn(agent.storeDir, 'packs').filter((pack) => readFileSync(pack).includes(kept))
  const missing = await verify()
  assert.ok(missing.length > 0 && missing.every(({ blob, isOffsite }) => isOffsite && fresh.endsWith(blob)))

  await mirror.run({ deletedBackups: [second.backupId] })
  assert.deepEqual(await verify(), [])
  await assertRestorable(t, mirror.dir, SERVER, new Map([...there.trees, [third.backupId, third.tree]]))
})

it('a part is replaced also where another has what is damaged in it', async (t) => {
  const there = await scene(t, {}, MANY)
  const path = fileIn(there, 'parts')
  copyFileSync(path, join(dirname(path), 'f'.repeat(32)))
  flip(path, 100)
  const [damage] = await there.verify()
  assert.ok(damage?.isOffsite && path.endsWith(damage.blob))
  assert.equal((await there.mirror.run()).repaired.length, 1)
  assert.deepEqual(await there.verify(), [])
})

it('A blob of the mirror is replaced only by one whose every byte was checked.', async (t) => {
  const there = await scene(t, {}, MANY)
  for (const folder of ['packs', 'index', 'parts', 'manifests']) {
    const [here, path] = [blobsIn(there.agent.storeDir, folder)[0] ?? '', fileIn(there, folder)]
    const sound = readFileSync(here)
    flip(path, 100)
    const damaged = readFileSync(path)
    assert.ok((await there.verify()).some(({ isOffsite }) => isOffsite))
    // After it was verified: only a look at all of it finds that.
    flip(here, folder === 'packs' ? 100_000 : 60)
    const report = await there.mirror.run()
    assert.deepEqual(report.repaired, [])
    assert.match(report.damaged[0]?.why ?? '', /on the disk as well/)
    assert.ok(readFileSync(path).equals(damaged), 'nothing was overwritten')
    // Nor where the mirror has it in another size.
    writeFileSync(path, damaged.subarray(0, 90))
    await there.mirror.run({ isThorough: true })
    assert.equal(readFileSync(path).length, 90)
    writeFileSync(here, sound)
    await there.mirror.run({ isThorough: true })
    assert.ok(readFileSync(path).equals(sound))
    assert.deepEqual((await there.mirror.run()).damaged, [])
  }
})

it('replaces what is damaged also where nothing may be removed', async (t) => {
  const there = await scene(t, { isAppendOnly: true })
  there.mirror.faults.before = (call) => assert.notEqual(call, 'delete')
  flip(fileIn(there, 'packs'), 100)
  await there.verify()
  assert.equal((await there.mirror.run()).repaired.length, 1)
  assert.deepEqual(await there.verify(), [])
})

it('a place that refuses to overwrite keeps nothing else from being sent, and is told', async (t) => {
  const there = await scene(t)
  const { mirror, agent, trees } = there
  const [pack = ''] = namesIn(mirror.dir, 'packs')
  flip(fileIn(there, 'packs'), 100)
  await there.verify()
  mirror.faults.before = (call, name) => {
    if (call === 'commit' && name.endsWith(pack)) throw new Error('locked until next year')
  }
  writeFileSync(join(agent.filesOf(SERVER), 'more'), randomBytes(1000))
  const { backupId, tree } = await mirror.backup(SERVER)
  trees.set(backupId, tree)
  const report = await mirror.run()
  assert.deepEqual([report.stored.length, report.repaired], [1, []])
  assert.deepEqual(report.damaged, [{ blob: `packs/${pack.slice(0, 2)}/${pack}`, why: 'locked until next year' }])
  delete mirror.faults.before
  assert.equal((await mirror.run()).repaired.length, 1)
  await assertRestorable(t, mirror.dir, SERVER, trees, [...trees.keys()])
})

it('what was found damaged is replaced also after a restart', async (t) => {
  const there = await scene(t)
  flip(fileIn(there, 'packs'), 100)
  await there.verify()
  await there.agent.stop()
  const offsite = () => openLocalStore(there.mirror.dir, { clear: false })
  const agent = await startAgent(there.agent.dataDir, { offsite })
  t.after(() => agent.stop())
  const mirror = await testMirror(t, { dir: there.mirror.dir, agent })
  assert.equal((await mirror.run()).repaired.length, 1)
  assert.deepEqual(await there.verify(agent), [])
})

it('a pack whose copy is damaged does not leave the disk', async (t) => {
  const there = await scene(t, { keepLocal: { bytes: 0 } })
  const { mirror, agent } = there
  flip(fileIn(there, 'packs'), 100)
  await there.verify()
  mirror.faults.before = (call) => {
    if (call === 'commit') throw new Error('not now')
  }
  // Another backup needs none of it.
  writeFileSync(join(agent.filesOf(SERVER), 'region'), randomBytes(1000))
  await mirror.backup(SERVER)
  await assert.rejects(mirror.run())
  const [pack = ''] = namesIn(mirror.dir, 'packs')
  mirror.faults.before = (call, name) => {
    if (call === 'commit' && name.endsWith(pack)) throw new Error('not now')
  }
  await mirror.run({ isThorough: true })
  assert.ok(namesIn(agent.storeDir, 'packs').includes(pack))
  delete mirror.faults.before
  await mirror.run()
  assert.ok(!namesIn(agent.storeDir, 'packs').includes(pack))
})
