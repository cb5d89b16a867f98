import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { newId } from '../../kit/ids.ts'
import { assertSameTree, snapshot, startAgent, temporaryFolder, testAgent } from './backups.testing.ts'
import { BLOCK_BYTES } from './format/format.ts'
import { setAttributes } from './restore/restore-attributes.ts'

const LONG_AGO = new Date('2020-02-02T02:02:02.123Z')

/** Older than any clock's tick, so that the next backup may trust the times. */
function age(path: string): void {
  utimesSync(path, LONG_AGO, LONG_AGO)
}

const untilSettled = () => new Promise((resolve) => setTimeout(resolve, 1100))

/** One of everything that a tree can hold. */
function fillOddly(root: string): void {
  mkdirSync(join(root, 'empty/deep/er'), { recursive: true })
  mkdirSync(join(root, 'world'), { mode: 0o750 })
  for (const size of [0, 1, 4095, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 9 * 1024 * 1024 + 17])
    writeFileSync(join(root, 'world', `file ${size}`), randomBytes(size))
  writeFileSync(join(root, 'world', 'text'), 'compressible '.repeat(50_000))
  const sparse = openSync(join(root, 'world', 'sparse'), 'w')
  writeSync(sparse, 'begin', 0)
  writeSync(sparse, 'end', 40 * 1024 * 1024)
  closeSync(sparse)
  truncateSync(join(root, 'world', 'sparse'), 50 * 1024 * 1024 + 3)
  writeFileSync(join(root, 'hole'), '')
  truncateSync(join(root, 'hole'), 3 * BLOCK_BYTES + 5)
  symlinkSync('world/text', join(root, 'link'))
  symlinkSync('/nowhere/at all', join(root, 'dangling'))
  symlinkSync('world', join(root, 'link to directory'))
  linkSync(join(root, 'world', 'text'), join(root, 'a hard link'))
  linkSync(join(root, 'world', 'text'), join(root, 'world', 'z hard link'))
  for (const name of [
    [0xff, 0xfe, 0x41],
    [0xc3, 0x28],
    [0x0a, 0x20, 0x09],
  ])
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]), Buffer.from(name))
  for (const name of ['%2e%2e', 'back\\slash', '..\\x', 'ünïcode ☃ 🎮', ' spaces ', '-rf', 'x'.repeat(255)])
    writeFileSync(join(root, name), name)
  chmodSync(join(root, 'world', 'file 1'), 0o711)
  chmodSync(join(root, 'empty'), 0o3775)
  chmodSync(join(root, 'world', 'file 4095'), 0o600)
  if (process.getuid?.() === 0) chownSync(join(root, 'world', 'file 4095'), 1234, 4321)
  age(join(root, 'world', 'file 1'))
  utimesSync(join(root, 'empty/deep'), LONG_AGO, LONG_AGO)
}

for (const [label, key] of [
  ['in the clear', null],
  ['encrypted', randomBytes(32)],
] as const) {
  describe(`a store ${label}`, () => {
    it('brings back every kind of thing, byte for byte, into an empty server', async (t) => {
      const agent = await testAgent(t, { key })
      const source = agent.filesOf('srv_a')
      fillOddly(source)
      const before = snapshot(source)
      const made = await agent.create('srv_a')
      assert.deepEqual([made.warnings, made.consistency], [[], 'offline'])
      assertSameTree(snapshot(source), before)
      const target = agent.filesOf('srv_b')
      const result = await agent.restore('srv_b', made.backupId, { sourceServerId: 'srv_a' })
      assertSameTree(snapshot(target), before)
      assert.equal(result.filesKept, 0)
      assert.ok(statSync(join(target, 'world/sparse')).blocks * 512 < 1024 * 1024, 'holes are holes again')
      const verified = await agent.run({ kind: 'backups.verify', backupId: made.backupId }, 'srv_a')
      assert.deepEqual(verified.damage, [])
      assert.ok(verified.blocksChecked > 80)
    })

    it('stores nothing twice, within a server, across servers and after opening again', async (t) => {
      const folder = temporaryFolder(t)
      const agent = await startAgent(folder, { key })
      const content = randomBytes(3 * BLOCK_BYTES + 100)
      for (const server of ['srv_a', 'srv_b']) {
        for (const name of ['one', 'two']) writeFileSync(join(agent.filesOf(server), name), content)
        writeFileSync(join(agent.filesOf(server), 'small'), content.subarray(0, 500))
      }
      const first = await agent.create('srv_a')
      assert.ok(first.storedBytes < content.length * 1.1, `${first.storedBytes} stored`)
      await agent.stop()
      const again = await startAgent(folder, { key })
      t.after(() => again.stop())
      assert.equal((await again.create('srv_b')).storedBytes, 0)
      assert.equal((await again.create('srv_a')).storedBytes, 0)
    })
  })
}

it('an encrypted store shows neither names nor content, and is not opened with another key', async (t) => {
  const folder = temporaryFolder(t)
  const agent = await startAgent(folder, { key: randomBytes(32) })
  writeFileSync(join(agent.filesOf('srv_a'), 'very-secret-name'), 'very secret content, quite short')
  await agent.create('srv_a')
  await agent.stop()
  const files = readdirSync(agent.storeDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  assert.ok(files.length >= 4)
  for (const file of files) assert.doesNotMatch(readFileSync(join(file.parentPath, file.name), 'latin1'), /secret/)
  await assert.rejects(startAgent(folder, { key: randomBytes(32) }), /another key/)
  await assert.rejects(startAgent(folder, { key: null }), /its key is needed/)
})

it('reads what has changed and nothing else, and does not trust times that a write could share', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'quiet'), randomBytes(BLOCK_BYTES * 3))
  await untilSettled()
  writeFileSync(join(root, 'racy'), 'first')
  const racy = statSync(join(root, 'racy'))
  await agent.create('srv_a')
  // The same size and mtime: only that the file was young when it was read makes it be read again.
  writeFileSync(join(root, 'racy'), 'other')
  utimesSync(join(root, 'racy'), racy.atime, racy.mtime)
  const before = statSync(join(root, 'quiet')).atimeMs
  const second = await agent.create('srv_a')
  assert.ok(second.storedBytes > 0)
  assert.equal(statSync(join(root, 'quiet')).atimeMs, before)
  rmSync(join(root, 'racy'))
  await agent.restore('srv_a', second.backupId)
  assert.equal(readFileSync(join(root, 'racy'), 'utf8'), 'other')
})

it('a lone file to read before very many that need no reading does not hold the backup up', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'a'), 'to be read')
  for (let file = 0; file < 10_000; file++) writeFileSync(join(root, `empty-${file}`), '')
  assert.equal((await agent.create('srv_a')).fileCount, 10_001)
})

it('leaves out what is ignored, by the request or by .backupignore, and says which patterns it used', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  mkdirSync(join(root, 'logs/old'), { recursive: true })
  writeFileSync(join(root, 'logs/old/x.log'), 'x')
  writeFileSync(join(root, 'keep.log'), 'x')
  writeFileSync(join(root, 'drop.log'), 'x')
  const asked = await agent.create('srv_a', { ignored: 'logs/\n*.log\n!keep.log' })
  const names = async (backupId: string) =>
    (await agent.backups.browse({ serverId: 'srv_a', backupId, path: '/', limit: 100, after: null })).entries.map(
      ({ name }) => name,
    )
  assert.deepEqual(await names(asked.backupId), ['keep.log'])
  writeFileSync(join(root, '.backupignore'), 'logs')
  const own = await agent.create('srv_a')
  assert.equal(own.ignored, 'logs')
  assert.deepEqual(await names(own.backupId), ['.backupignore', 'drop.log', 'keep.log'])
  // What the backup left out was not created since: a restore leaves it alone.
  await agent.restore('srv_a', own.backupId)
  assert.equal(readFileSync(join(root, 'logs/old/x.log'), 'utf8'), 'x')
})

it('warns about what is no file, and backs up the rest', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  execFileSync('mkfifo', [join(root, 'pipe')])
  writeFileSync(join(root, 'file'), 'x')
  const made = await agent.create('srv_a')
  assert.equal(made.fileCount, 1)
  assert.equal(made.warningCount, 1)
  assert.match(made.warnings[0] ?? '', /^\/pipe is neither/)
})

it('keeps a file that changes while it is read, with a warning, and reports the backup as live', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  const names = ['grows', 'shrinks', 'vanishes', 'appears']
  for (const name of names) writeFileSync(join(root, name), randomBytes(24 * 1024 * 1024))
  writeFileSync(join(root, 'still'), 'still')
  let isDone = false
  const disturb = async () => {
    for (let round = 0; !isDone; round++) {
      appendFileSync(join(root, 'grows'), 'more')
      truncateSync(join(root, 'shrinks'), 24 * 1024 * 1024 - round)
      rmSync(join(root, 'vanishes'), { force: true })
      renameSync(join(root, 'appears'), join(root, `appears ${round}`))
      renameSync(join(root, `appears ${round}`), join(root, 'appears'))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const disturbing = disturb()
  const made = await agent.create('srv_a')
  isDone = true
  await disturbing
  assert.equal(made.consistency, 'live')
  assert.ok(
    made.warnings.some((warning) => warning.startsWith('/grows kept changing')),
    made.warnings.join('\n'),
  )
  const target = agent.filesOf('srv_b')
  await agent.restore('srv_b', made.backupId, { sourceServerId: 'srv_a' })
  assert.equal(readFileSync(join(target, 'still'), 'utf8'), 'still')
  const grown = readFileSync(join(target, 'grows'))
  assert.deepEqual(grown, readFileSync(join(root, 'grows')).subarray(0, grown.length))
  assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId: made.backupId }, 'srv_a')).damage, [])
})

it('Where a backup fails or is cancelled, its index and its packs are deleted', async (t) => {
  const agent = await testAgent(t)
  writeFileSync(join(agent.filesOf('srv_a'), 'large'), randomBytes(80 * 1024 * 1024))
  const abort = new AbortController()
  const backupId = newId('bkp')
  const work = { kind: 'backups.create', backupId, name: 'x', createdAt: 0, ignored: '', isLocked: false } as const
  const running = agent.run(work, 'srv_a', abort.signal)
  setImmediate(() => abort.abort())
  await assert.rejects(running, { name: 'AbortError' })
  assert.deepEqual(await agent.backups.list({ serverId: null }), [])
  assert.ok(diskUse(agent.storeDir) < 100_000)
  await agent.create('srv_a', { backupId })
})

it('a backup that is asked for twice is made once', async (t) => {
  const agent = await testAgent(t)
  writeFileSync(join(agent.filesOf('srv_a'), 'file'), 'x')
  const first = await agent.create('srv_a')
  writeFileSync(join(agent.filesOf('srv_a'), 'file'), 'y')
  assert.deepEqual(await agent.create('srv_a', { backupId: first.backupId }), first)
})

it('deleting backups and reclaiming gives their space back, and leaves every other backup whole', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  const made: { backupId: string; tree: ReturnType<typeof snapshot> }[] = []
  writeFileSync(join(root, 'constant'), randomBytes(2_000_000))
  for (let round = 0; round < 8; round++) {
    writeFileSync(join(root, 'changing'), randomBytes(3_000_000))
    writeFileSync(join(root, `small ${round}`), randomBytes(100 + round))
    made.push({ backupId: (await agent.create('srv_a')).backupId, tree: snapshot(root) })
  }
  const before = diskUse(agent.storeDir)
  for (const { backupId } of made.slice(0, 6)) await agent.backups.remove({ serverId: 'srv_a', backupId })
  const result = await agent.run({ kind: 'backups.reclaim' })
  assert.ok(result.freedBytes > 17_000_000, JSON.stringify(result))
  assert.ok(diskUse(agent.storeDir) < before - 17_000_000)
  for (const { backupId, tree } of made.slice(6)) {
    await agent.restore('srv_a', backupId)
    assertSameTree(snapshot(root), tree)
  }
  const scrubbed = await agent.run({ kind: 'backups.scrub', share: 1 })
  assert.deepEqual([scrubbed.damage, scrubbed.isRoundDone], [[], true])
  assert.equal((await agent.run({ kind: 'backups.reclaim' })).freedBytes, 0)
})

it('With replace, anything created since the backup goes to the trash and can be restored from there.', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  mkdirSync(join(root, 'world'))
  writeFileSync(join(root, 'world/level.dat'), 'old level')
  writeFileSync(join(root, 'same'), 'same')
  const before = snapshot(root)
  const { backupId } = await agent.create('srv_a')
  writeFileSync(join(root, 'world/level.dat'), 'new level, longer')
  mkdirSync(join(root, 'created/since'), { recursive: true })
  writeFileSync(join(root, 'created/since/file'), 'created')
  rmSync(join(root, 'same'))
  mkdirSync(join(root, 'same'))
  const result = await agent.restore('srv_a', backupId)
  assertSameTree(snapshot(root), before)
  assert.equal(result.displaced, 3)
  const { items } = await agent.files.listTrash({ serverId: 'srv_a' })
  assert.deepEqual(items.map(({ path }) => path).sort(), ['/created', '/same', '/world/level.dat'])
})

it('merge leaves what the backup does not have; paths restore those alone', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  mkdirSync(join(root, 'a/b'), { recursive: true })
  for (const name of ['a/b/one', 'a/two', 'three']) writeFileSync(join(root, name), name)
  linkSync(join(root, 'three'), join(root, 'a/linked'))
  const { backupId } = await agent.create('srv_a')
  rmSync(join(root, 'a'), { recursive: true })
  writeFileSync(join(root, 'three'), 'changed three')
  writeFileSync(join(root, 'mine'), 'mine')
  await agent.restore('srv_a', backupId, { paths: ['/a/b', '/a/linked'] })
  assert.deepEqual(Object.keys(snapshot(root)), ['/a', '/a/b', '/a/b/one', '/a/linked', '/mine', '/three'])
  assert.equal(readFileSync(join(root, 'a/linked'), 'utf8'), 'three')
  assert.equal(readFileSync(join(root, 'three'), 'utf8'), 'changed three')
  await agent.restore('srv_a', backupId, { mode: 'merge' })
  assert.equal(readFileSync(join(root, 'three'), 'utf8'), 'three')
  assert.equal(readFileSync(join(root, 'mine'), 'utf8'), 'mine')
  assert.equal(readFileSync(join(root, 'a/two'), 'utf8'), 'a/two')
  await assert.rejects(agent.restore('srv_a', backupId, { paths: ['/absent'] }), { code: 'not_found' })
})

it('a restore over a tree that has hardly changed touches only what has', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  for (let index = 0; index < 50; index++) writeFileSync(join(root, `file ${index}`), randomBytes(2000))
  await untilSettled()
  const { backupId } = await agent.create('srv_a')
  const before = snapshot(root)
  const inode = statSync(join(root, 'file 7')).ino
  writeFileSync(join(root, 'file 3'), randomBytes(2000))
  utimesSync(join(root, 'file 7'), 1, 1)
  const result = await agent.restore('srv_a', backupId)
  assert.deepEqual([result.filesRestored, result.filesKept, result.displaced], [1, 49, 1])
  assertSameTree(snapshot(root), before)
  assert.equal(statSync(join(root, 'file 7')).ino, inode, 'the same content with other times is not written again')
})

it('refuses a second backup or restore of a server while one is under way', async (t) => {
  const agent = await testAgent(t)
  writeFileSync(join(agent.filesOf('srv_a'), 'large'), randomBytes(30 * 1024 * 1024))
  const first = agent.create('srv_a')
  await assert.rejects(agent.create('srv_a'), { code: 'server_busy' })
  const { backupId } = await first
  const restoring = agent.restore('srv_a', backupId)
  await assert.rejects(agent.restore('srv_a', backupId), { code: 'server_busy' })
  await restoring
})

it('restores large files whose blocks stand in another order than in the pack, or more than once', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  const sectors = Array.from({ length: 40 }, () => Buffer.concat([randomBytes(BLOCK_BYTES - 1000), Buffer.alloc(1000)]))
  const fileOf = (order: number[]) => Buffer.concat(order.map((block) => sectors[block] ?? Buffer.alloc(0)))
  const inOrder = sectors.map((_, block) => block)
  writeFileSync(join(root, 'a'), fileOf(inOrder))
  writeFileSync(join(root, 'b'), fileOf(inOrder.toReversed()))
  writeFileSync(join(root, 'c'), fileOf(inOrder.flatMap((block) => [block ^ 1, block ^ 1])))
  writeFileSync(join(root, 'd'), fileOf(inOrder.filter((block) => block % 3 > 0)))
  const { backupId } = await agent.create('srv_a')
  const other = agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(other), snapshot(root))
})

it('restores into nothing but the tree: a directory swapped for a symlink is not followed', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  const outside = temporaryFolder(t)
  mkdirSync(join(root, 'world'))
  writeFileSync(join(root, 'world/level.dat'), 'level')
  const { backupId } = await agent.create('srv_a')
  rmSync(join(root, 'world'), { recursive: true })
  symlinkSync(outside, join(root, 'world'))
  await agent.restore('srv_a', backupId)
  assert.ok(!existsSync(join(outside, 'level.dat')))
  assert.equal(readFileSync(join(root, 'world/level.dat'), 'utf8'), 'level')
})

it('sets modes and times on the thing itself, never on what a symlink swapped in for it points to', (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'outside'), 'x', { mode: 0o600 })
  symlinkSync('outside', join(folder, 'swapped'))
  const before = snapshot(folder)
  const attributes = { mode: 0o777, uid: 0, gid: 0, mtime: '1000000000', isSymlink: false }
  setAttributes(join(folder, 'swapped'), attributes)
  assertSameTree(snapshot(folder), before)
  setAttributes(join(folder, 'outside'), { ...attributes, isSymlink: true })
  assertSameTree(snapshot(folder), before)
  setAttributes(join(folder, 'outside'), attributes)
  assert.equal(statSync(join(folder, 'outside')).mode & 0o7777, 0o777)
})

function diskUse(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}
