// The mirror and the parts that manifests share: at every instant a manifest in it has those that it names.
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { changeSectors } from '../../../test/faults/backups-tree.ts'
import { blobsIn, namesIn } from '../../blobs/store.testing.ts'
import type { Tree } from '../backups/backups.testing.ts'
import { BLOCK_BYTES } from '../backups/format/format.ts'
import { assertRestorable, killEverywhere, SERVER, type TestMirror, testMirror } from './mirror.testing.ts'

/** Two backups that share a part. */
async function sharing(t: TestContext): Promise<{ mirror: TestMirror; trees: Map<string, Tree> }> {
  const mirror = await testMirror(t)
  const root = mirror.agent.filesOf(SERVER)
  for (let index = 0; index < 60; index++) writeFileSync(join(root, `file ${100 + index}`), `content ${index}`)
  await new Promise((resolve) => setTimeout(resolve, 1100))
  const trees = new Map<string, Tree>()
  for (const content of ['one', 'two']) {
    writeFileSync(join(root, 'file 110'), content)
    const { backupId, tree } = await mirror.backup(SERVER)
    trees.set(backupId, tree)
  }
  assert.ok(namesIn(mirror.agent.storeDir, 'parts').length > 0)
  return { mirror, trees }
}

const formatIn = (dir: string) => JSON.parse(readFileSync(join(dir, 'format'), 'utf8'))
const versionOf = (dir: string) => formatIn(dir).version

/** As it was before the store had parts. */
function sayFormatOne({ agent, dir }: TestMirror): void {
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'format'), JSON.stringify({ ...formatIn(agent.storeDir), version: 1 }))
}

it('a run that is killed before anything that it would write or remove leaves no manifest without its parts', async (t) => {
  const { mirror, trees } = await sharing(t)
  const { agent, dir } = mirror
  const check = async () => {
    if (namesIn(dir, 'parts').length > 0) assert.equal(versionOf(dir), 2)
    await assertRestorable(t, dir, SERVER, trees)
  }
  await killEverywhere(t, mirror, [], check)
  const [first = ''] = trees.keys()
  await agent.backups.remove({ serverId: SERVER, backupId: first })
  for (let index = 0; index < 60; index++)
    writeFileSync(join(agent.filesOf(SERVER), `file ${100 + index}`), `other ${index}`)
  const third = await mirror.backup(SERVER)
  trees.set(third.backupId, third.tree)
  await agent.run({ kind: 'backups.reclaim' })
  await killEverywhere(t, mirror, [first], check)
  assert.deepEqual(namesIn(dir, 'parts'), namesIn(agent.storeDir, 'parts'))
})

it('a mirror of format 1 says that it has parts before it gets the first', async (t) => {
  const { mirror } = await sharing(t)
  const { agent, dir } = mirror
  sayFormatOne(mirror)
  const versions: number[] = []
  mirror.faults.before = (call, name) => {
    if (call === 'commit' && name.startsWith('parts/')) versions.push(versionOf(dir))
  }
  await mirror.run()
  assert.ok(versions.length > 0 && versions.every((version) => version === 2))
  assert.deepEqual(formatIn(dir), formatIn(agent.storeDir))
})

it('format says so before the part is there, or the manifest that lists such a block, in a copy too', async (t) => {
  const mirror = await testMirror(t)
  const { agent, dir } = mirror
  const path = join(agent.filesOf(SERVER), 'region')
  // Whole blocks: the last one of another size would not be patched.
  writeFileSync(path, randomBytes(32 * BLOCK_BYTES))
  const trees = new Map<string, Tree>()
  const versions: number[] = []
  mirror.faults.before = (call, name) => {
    if (call === 'commit' && name.startsWith('manifests/')) versions.push(versionOf(dir))
  }
  for (let count = 0; count < 3; count++) {
    const { backupId, tree } = await mirror.backup(SERVER)
    trees.set(backupId, tree)
    await mirror.run()
    changeSectors(path, randomInt)
  }
  assert.deepEqual(versions, [2, 3, 3])
  assert.deepEqual(formatIn(dir), formatIn(agent.storeDir))
  await assertRestorable(t, dir, SERVER, trees, [...trees.keys()])
})

it('no part is sent to a mirror that does not keep the whole of what says so, and it is put right', async (t) => {
  const { mirror, trees } = await sharing(t)
  const { dir } = mirror
  sayFormatOne(mirror)
  mirror.faults.keepsPart = (name) => name === 'format'
  await assert.rejects(mirror.run(), { code: 'offsite_unreachable', message: /acknowledged/ })
  assert.deepEqual([namesIn(dir, 'parts'), namesIn(dir, 'manifests')], [[], []])
  // Only the first time: the same run puts it right.
  sayFormatOne(mirror)
  let times = 0
  mirror.faults.keepsPart = (name) => name === 'format' && ++times === 1
  await mirror.run()
  assert.deepEqual([times, versionOf(dir)], [2, 2])
  await assertRestorable(t, dir, SERVER, trees, [...trees.keys()])
})

it('keeps a part that the disk has lost, though nobody has deleted it', async (t) => {
  const { mirror, trees } = await sharing(t)
  const { agent, dir } = mirror
  await mirror.run()
  const parts = namesIn(dir, 'parts')
  rmSync(join(agent.storeDir, 'parts'), { recursive: true })
  const { surplus, removed } = await mirror.run({ isThorough: true })
  assert.deepEqual([surplus?.reason, removed.blobs], ['store_incomplete', 0])
  assert.deepEqual(namesIn(dir, 'parts'), parts)
  // Whatever was confirmed: manifests that stay name it.
  assert.equal((await mirror.run({ confirmedBytes: 1e9 })).removed.blobs, 0)
  await assertRestorable(t, dir, SERVER, trees, [...trees.keys()])
})

it('keeps a part that the disk has lost also while the backups that name it are in the mirror alone', async (t) => {
  const { mirror, trees } = await sharing(t)
  const { agent, dir } = mirror
  const deletedBackups = [...trees.keys()]
  await mirror.run()
  const parts = namesIn(dir, 'parts')
  for (const path of blobsIn(agent.storeDir, 'parts')) rmSync(path)
  const { backupId, tree } = await mirror.backup(SERVER)
  trees.set(backupId, tree)
  // They are deleted after the store was listed: this run does not remove them yet.
  mirror.faults.before = async (call, name) => {
    if (call === 'commit' && name.startsWith('manifests/'))
      for (const each of deletedBackups) await agent.backups.remove({ serverId: SERVER, backupId: each })
  }
  const { surplus } = await mirror.run({ deletedBackups })
  assert.equal(surplus?.reason, 'store_incomplete')
  assert.deepEqual(
    parts.filter((part) => !namesIn(dir, 'parts').includes(part)),
    [],
  )
  await assertRestorable(t, dir, SERVER, trees, [...trees.keys()])
  delete mirror.faults.before
  const { bytes } = (await mirror.run({ deletedBackups })).surplus ?? { bytes: 0 }
  await mirror.run({ deletedBackups, confirmedBytes: bytes })
  assert.deepEqual(namesIn(dir, 'manifests'), [backupId])
  assert.deepEqual(namesIn(dir, 'parts'), namesIn(agent.storeDir, 'parts'))
})

it('a part that arrives short is sent again before a manifest that needs it, and a damaged one here never replaces it', async (t) => {
  const { mirror, trees } = await sharing(t)
  const { agent, dir } = mirror
  mirror.faults.keepsPart = (name) => name.startsWith('parts/')
  await assert.rejects(mirror.run(), { code: 'offsite_unreachable' })
  assert.deepEqual(namesIn(dir, 'manifests'), [])
  delete mirror.faults.keepsPart
  await mirror.run({ isThorough: true })
  await assertRestorable(t, dir, SERVER, trees, [...trees.keys()])
  const [part = ''] = namesIn(dir, 'parts')
  const whole = readFileSync(join(dir, 'parts', SERVER, part))
  writeFileSync(join(agent.storeDir, 'parts', SERVER, part), whole.subarray(0, -10))
  await mirror.run({ isThorough: true })
  assert.ok(readFileSync(join(dir, 'parts', SERVER, part)).equals(whole))
})
