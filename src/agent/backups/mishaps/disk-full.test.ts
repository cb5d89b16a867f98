import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { mount, withoutRoot } from '../../files/trees.testing.ts'
import { assertSameTree, snapshot, startAgent, temporaryFolder } from '../backups.testing.ts'

it('a full disk at any point fails with disk_full, gives the space back and harms no backup', {
  skip: withoutRoot(),
}, async (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'backups'))
  using _mounted = mount(join(folder, 'backups'), '-t', 'tmpfs', '-o', 'size=24m', 'none')
  const agent = await startAgent(folder)
  const root = agent.filesOf('srv_a')
  const free = () => statfsSync(join(folder, 'backups')).bavail * 4096
  writeFileSync(join(root, 'kept'), randomBytes(2_000_000))
  const tree = snapshot(root)
  const { backupId } = await agent.create('srv_a')
  writeFileSync(join(root, 'more'), randomBytes(6_000_000))
  const filler = join(folder, 'backups/filler')
  const attempt = async (room: number) => {
    writeFileSync(filler, Buffer.alloc(Math.max(0, free() - room)))
    const before = free()
    try {
      await agent.create('srv_a')
      return true
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'disk_full', String(error))
      assert.equal(free(), before, `with room for ${room} all of it is given back`)
      assert.equal((await agent.backups.list({ serverId: null })).length, 1)
      return false
    } finally {
      rmSync(filler)
      assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
    }
  }
  for (const room of [0, 8_192, 200_000, 3_000_000]) assert.equal(await attempt(room), false)
  // Page by page up to where it fits: the last bytes of the pack, the index, the manifest.
  let room = 5_996_544
  while (!(await attempt(room))) room += 4096
  assert.ok(room > 6_004_736, `${room}`)
  await agent.restore('srv_a', backupId)
  assertSameTree(snapshot(root), tree)
  await agent.stop()
})

it('Other backups do not count on its blocks before step 3 is done.', async (t) => {
  const folder = temporaryFolder(t)
  const agent = await startAgent(folder)
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'file'), randomBytes(300_000))
  const tree = snapshot(root)
  // The last step fails: a file has the name of the folder that manifests go to.
  mkdirSync(join(folder, 'backups/manifests'))
  writeFileSync(join(folder, 'backups/manifests/srv_a'), '')
  await assert.rejects(agent.create('srv_a'))
  assert.equal((await agent.backups.store()).packCount, 0)
  rmSync(join(folder, 'backups/manifests/srv_a'))
  mkdirSync(join(folder, 'backups/manifests/srv_a'))
  const { backupId, storedBytes } = await agent.create('srv_a')
  assert.ok(storedBytes > 300_000)
  rmSync(join(root, 'file'))
  await agent.restore('srv_a', backupId)
  assertSameTree(snapshot(root), tree)
  await agent.stop()
})

it('If anything goes wrong before the swap, the files are unchanged.', { skip: withoutRoot() }, async (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'servers'))
  using _mounted = mount(join(folder, 'servers'), '-t', 'tmpfs', '-o', 'size=16m', 'none')
  const agent = await startAgent(folder)
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'large'), randomBytes(9_000_000))
  const { backupId } = await agent.create('srv_a')
  writeFileSync(join(root, 'large'), randomBytes(9_000_001))
  const before = snapshot(root)
  await assert.rejects(agent.restore('srv_a', backupId), { code: 'disk_full' })
  assert.deepEqual(snapshot(root), before)
  rmSync(join(root, 'large'))
  await agent.restore('srv_a', backupId)
  assert.equal(Object.keys(snapshot(root)).length, 1)
  await agent.stop()
})
