import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { it } from 'node:test'
import fc from 'fast-check'
import type { ScrubReport } from '../../../contract/agent/agent-backups.ts'
import { assertSameTree, snapshot, startAgent, type TestAgent, temporaryFolder, testAgent } from '../backups.testing.ts'
import { BLOCK_BYTES } from '../format/format.ts'

function fill(agent: TestAgent): string {
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'random'), randomBytes(300_000))
  writeFileSync(join(root, 'text'), 'some text '.repeat(40_000))
  for (let index = 0; index < 20; index++) writeFileSync(join(root, `small ${index}`), `small ${index} `.repeat(index))
  return root
}

function blobs(agent: TestAgent, folder: string): string[] {
  return readdirSync(join(agent.storeDir, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

function flip(path: string, at: number, mask: number): void {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] ?? 0) ^ mask
  writeFileSync(path, bytes)
}

for (const key of [null, randomBytes(32)]) {
  it(`a byte flipped anywhere is found, named and never restored (${key ? 'encrypted' : 'in the clear'})`, async (t) => {
    const agent = await testAgent(t, { key })
    const before = snapshot(fill(agent))
    const { backupId } = await agent.create('srv_a')
    const target = agent.filesOf('srv_b')
    const files = ['packs', 'index', 'parts', 'manifests'].flatMap((folder) => blobs(agent, folder))
    const choice = fc.record({
      file: fc.constantFrom(...files),
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      mask: fc.integer({ min: 1, max: 255 }),
    })
    await fc.assert(
      fc.asyncProperty(choice, async ({ file, at, mask }) => {
        const whole = readFileSync(file)
        const stats = statSync(file)
        flip(file, Math.floor(at * stats.size), mask)
        try {
          const { damage } = await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')
          assert.ok(damage.length > 0, `${file} at ${at}: not found`)
          assert.ok(
            damage.every(({ blob }) => file.endsWith(blob)),
            `${JSON.stringify(damage)} does not name ${file}`,
          )
          for (const { blockId, touches } of damage)
            if (blockId) assert.ok(touches.some((touched) => touched.backupId === backupId))
          await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' }).then(
            () => assertSameTree(snapshot(target), before),
            (error) => {
              assert.equal(error.code, 'backup_damaged')
              assert.deepEqual(snapshot(target), {})
            },
          )
        } finally {
          writeFileSync(file, whole)
          rmSync(join(agent.storeDir, 'state/damage'), { force: true })
          rmSync(target, { recursive: true })
          agent.filesOf('srv_b')
        }
      }),
      { numRuns: 40 },
    )
  })
}

it('a byte flipped in what fills a pack up is found, and the pack is written anew without it', async (t) => {
  const agent = await testAgent(t)
  writeFileSync(join(agent.filesOf('srv_a'), 'large'), randomBytes(3_000_000))
  const { backupId } = await agent.create('srv_a')
  const [pack = ''] = blobs(agent, 'packs')
  assert.deepEqual(readFileSync(pack).subarray(8, 4096), Buffer.alloc(4088))
  flip(pack, 2000, 1)
  const verified = await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')
  assert.deepEqual(
    verified.damage.map(({ blob, blockId }) => [pack.endsWith(blob), blockId]),
    [[true, null]],
  )
  const { packsRewritten } = await agent.run({ kind: 'backups.reclaim' })
  assert.equal(packsRewritten, 1)
  assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')).damage, [])
})

for (const isRestarted of [true, false]) {
  const when = isRestarted ? 'after a restart too' : 'in the same process'
  it(`a damaged block is healed by the next backup that still has its content, ${when}`, async (t) => {
    const folder = temporaryFolder(t)
    let agent = await startAgent(folder)
    const root = fill(agent)
    await new Promise((resolve) => setTimeout(resolve, 1100))
    const before = snapshot(root)
    const first = await agent.create('srv_a')
    const [pack = ''] = blobs(agent, 'packs')
    flip(pack, 100_000, 1)
    const found = await agent.run({ kind: 'backups.scrub', share: 1 })
    assert.equal(found.damage.length, 1)
    assert.deepEqual(found.damage[0]?.touches, [{ serverId: 'srv_a', backupId: first.backupId, path: '/random' }])
    await assert.rejects(agent.restore('srv_b', first.backupId, { sourceServerId: 'srv_a' }), { code: 'not_found' })
    agent.filesOf('srv_b')
    await assert.rejects(agent.restore('srv_b', first.backupId, { sourceServerId: 'srv_a' }), {
      code: 'backup_damaged',
    })
    if (isRestarted) {
      await agent.stop()
      agent = await startAgent(folder)
    }
    t.after(() => agent.stop())
    const second = await agent.create('srv_a')
    const { storedBytes } = second
    assert.ok(storedBytes > 0.8 * BLOCK_BYTES && storedBytes < 1.6 * BLOCK_BYTES, `${storedBytes} stored anew`)
    for (const { backupId } of [first, second]) {
      await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
      assertSameTree(snapshot(agent.filesOf('srv_b')), before)
    }
    assert.deepEqual((await agent.run({ kind: 'backups.scrub', share: 1 })).damage, [])
    await agent.run({ kind: 'backups.reclaim' })
    assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId: first.backupId }, 'srv_a')).damage, [])
  })
}

it('a backup is made beside a manifest that is damaged', async (t) => {
  const agent = await testAgent(t)
  const root = fill(agent)
  await new Promise((resolve) => setTimeout(resolve, 1100))
  const before = snapshot(root)
  await agent.create('srv_a')
  const [manifest = ''] = blobs(agent, 'manifests')
  flip(manifest, 40, 2)
  const { backupId } = await agent.create('srv_a')
  agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(agent.filesOf('srv_b')), before)
})

it('A pack that no index lists is read from its own table.', async (t) => {
  for (const spoil of [(path: string) => rmSync(path), (path: string) => flip(path, 60, 4)]) {
    const folder = temporaryFolder(t)
    const agent = await startAgent(folder)
    const before = snapshot(fill(agent))
    const { backupId } = await agent.create('srv_a')
    await agent.stop()
    for (const index of blobs(agent, 'index')) spoil(index)
    const again = await startAgent(folder)
    const target = again.filesOf('srv_b')
    await again.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
    assertSameTree(snapshot(target), before)
    assert.deepEqual((await again.run({ kind: 'backups.scrub', share: 1 })).damage, [])
    await again.stop()
  }
})

it('a pack that is gone is damage, and its content is stored again', async (t) => {
  const folder = temporaryFolder(t)
  let agent = await startAgent(folder)
  const before = snapshot(fill(agent))
  const first = await agent.create('srv_a')
  await agent.stop()
  for (const pack of blobs(agent, 'packs')) rmSync(pack)
  agent = await startAgent(folder)
  t.after(() => agent.stop())
  const { damage } = await agent.run({ kind: 'backups.verify', backupId: first.backupId }, 'srv_a')
  assert.ok(damage.some(({ touches }) => touches.some(({ path }) => path === '/random')))
  await agent.create('srv_a')
  const target = agent.filesOf('srv_b')
  await agent.restore('srv_b', first.backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(target), before)
})

it('a scrub goes on where the last one ended, also after opening again', async (t) => {
  const folder = temporaryFolder(t)
  let agent = await startAgent(folder)
  for (let round = 0; round < 6; round++) {
    writeFileSync(join(agent.filesOf('srv_a'), 'file'), randomBytes(200_000))
    await agent.create('srv_a')
  }
  let bytes = 0
  let rounds = 0
  for (let isDone = false; !isDone; rounds++) {
    const result = await agent.run({ kind: 'backups.scrub', share: 0.3 })
    bytes += result.bytesChecked
    isDone = result.isRoundDone
    await agent.stop()
    agent = await startAgent(folder)
  }
  t.after(() => agent.stop())
  assert.ok(rounds > 2 && rounds < 6, `${rounds} rounds`)
  assert.ok(bytes >= 1_200_000 && bytes < 1_300_000, `${bytes} bytes`)
})

it('a scrub lets a reclaim in between two packs, and does not miss what that takes away', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  const made: string[] = []
  for (let version = 0; version < 6; version++) {
    writeFileSync(join(root, 'world'), randomBytes(BLOCK_BYTES))
    made.push((await agent.create('srv_a')).backupId)
  }
  for (const backupId of made.slice(0, 5)) await agent.backups.remove({ serverId: 'srv_a', backupId })
  const ended: string[] = []
  let reclaiming: Promise<unknown> | undefined
  const report = () => {
    reclaiming ??= agent.run({ kind: 'backups.reclaim' }).then(() => ended.push('reclaim'))
  }
  const context = { taskId: 'job_scrub', serverId: 'srv_none', signal: new AbortController().signal, report }
  const scrubbed = await agent.backups.handlers['backups.scrub']({ kind: 'backups.scrub', share: 1 }, context)
  ended.push('scrub')
  await reclaiming
  assert.deepEqual(ended, ['reclaim', 'scrub'])
  assert.deepEqual((scrubbed as ScrubReport).damage, [])
})

it('a report names every blob that is damaged, and before the second block of any', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  for (let index = 0; index < 3000; index++) writeFileSync(join(root, `small ${index}`), `${index}`)
  await agent.create('srv_a')
  writeFileSync(join(root, 'small 2999'), 'another')
  const { backupId } = await agent.create('srv_a')
  const spoilt = ['packs', 'index', 'parts'].flatMap((folder) => blobs(agent, folder))
  spoilt.push(...blobs(agent, 'manifests').filter((path) => path.endsWith(backupId)))
  for (const path of spoilt) flip(path, 100, 1)
  const { damage } = await agent.run({ kind: 'backups.scrub', share: 1 })
  assert.ok(damage.length > 200, `${damage.length} findings`)
  const first = damage.slice(0, spoilt.length).map(({ blob }) => blob)
  assert.deepEqual(first.sort(), spoilt.map((path) => relative(agent.storeDir, path)).sort())
})
