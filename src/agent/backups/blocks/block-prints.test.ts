import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import fc from 'fast-check'
import { startAgent, temporaryFolder, testAgent } from '../backups.testing.ts'
import { BLOCK_BYTES } from '../format/format.ts'
import { createGmac } from '../format/gmac.ts'
import { createSealer } from '../format/seal.ts'
import { packRanges, SLOT_BYTES, unpackReads, ZERO_BLOCK } from '../workers/worker-jobs.ts'
import { readFiles } from '../workers/worker-read.ts'
import {
  createPrintCache,
  PRINTED_FROM_BYTES,
  type Prints,
  printsBetween,
  STRETCH_BLOCKS,
  STRETCH_BYTES,
} from './block-prints.ts'

it('another bit, another length or another key is another print', () => {
  const print = createGmac(Buffer.alloc(16, 1))
  const other = createGmac(Buffer.alloc(16, 2))
  const blocks = fc.uint8Array({ minLength: 1, maxLength: 300 })
  fc.assert(
    fc.property(blocks, fc.nat(), (block, bit) => {
      const flipped = Uint8Array.from(block)
      const at = bit % (block.length * 8)
      flipped[at >> 3] = (flipped[at >> 3] ?? 0) ^ (1 << (at & 7))
      assert.deepEqual(print(block), print(Uint8Array.from(block)))
      assert.notDeepEqual(print(flipped), print(block))
      assert.notDeepEqual(print(Buffer.concat([block, Buffer.alloc(1)])), print(block))
      assert.notDeepEqual(other(block), print(block))
    }),
  )
})

it('keeps no more than it may, and lets go of the oldest first', () => {
  const cache = createPrintCache(1000)
  const some = { prints: new Uint8Array(100), ids: new Uint8Array(200) }
  for (const path of ['/a', '/b', '/c']) cache.set('srv_a', path, some)
  cache.set('srv_a', '/a', some)
  cache.set('srv_a', '/d', some)
  assert.deepEqual(
    ['/a', '/b', '/c', '/d'].map((path) => cache.get('srv_a', path) !== undefined),
    [true, false, true, true],
  )
  assert.equal(cache.get('srv_b', '/a'), undefined)
  cache.set('srv_a', '/large', { prints: new Uint8Array(1000), ids: new Uint8Array(2000) })
  for (const path of ['/a', '/c', '/d', '/large']) assert.equal(cache.get('srv_a', path), undefined)
})

it('a part of the prints has memory of its own, of just its size', () => {
  const all = { prints: new Uint8Array(1000 * 16), ids: new Uint8Array(1000 * 32) }
  const part = printsBetween(all, 2 * STRETCH_BYTES, 3 * STRETCH_BYTES + BLOCK_BYTES + 1)
  assert.deepEqual([part.prints.buffer.byteLength, part.ids.buffer.byteLength], [2 * 16, 6 * 32])
})

it('of a file whose prints are known, only the stretches that have changed are named', (t) => {
  const path = join(temporaryFolder(t), 'region')
  writeFileSync(path, randomBytes(20 * BLOCK_BYTES))
  apply(path, { kind: 'zeros', block: 3 })
  const sealer = createSealer(null, 'sha-256')
  let named = 0
  const counting = {
    ...sealer,
    nameTo(target: Buffer, at: number, block: Uint8Array) {
      named++
      sealer.nameTo(target, at, block)
    },
  }
  const tools = { sealer: counting, patcher: null, print: createGmac(randomBytes(16)), gmac: null }
  const read = (known: Prints | null) => {
    const fd = openSync(path, 'r')
    const { size, mtimeNs, ctimeNs } = fstatSync(fd, { bigint: true })
    const before = { isPrinted: true, known, prior: null }
    const file = { fd, address: null, from: 0, to: Number(size), size, mtimeNs, ctimeNs, ...before }
    const result = readFiles(tools, {
      kind: 'read',
      files: packRanges([file]),
      filter: null,
      slot: new SharedArrayBuffer(SLOT_BYTES),
    })
    closeSync(fd)
    const [only] = unpackReads(result)
    assert.ok(only?.prints)
    return { prints: only.prints, ids: only.ids, flags: [...only.flags].map((flag) => flag === ZERO_BLOCK) }
  }
  const before = read(null)
  assert.equal(named, 19)
  apply(path, { kind: 'bytes', at: 7 * BLOCK_BYTES + 100, length: 10 })
  const after = read(before)
  assert.equal(named, 19 + STRETCH_BLOCKS)
  assert.deepEqual(after, read(null))
})

const SIZE = PRINTED_FROM_BYTES + 5 * BLOCK_BYTES + 1234

const edit = fc.oneof(
  fc.record({
    kind: fc.constant('bytes' as const),
    at: fc.nat({ max: SIZE }),
    length: fc.integer({ min: 1, max: 200_000 }),
  }),
  fc.record({ kind: fc.constant('swap' as const), a: fc.nat({ max: 15 }), b: fc.nat({ max: 15 }) }),
  fc.record({ kind: fc.constant('zeros' as const), block: fc.nat({ max: 15 }) }),
  fc.record({ kind: fc.constant('size' as const), size: fc.integer({ min: SIZE - 70_000, max: SIZE + 70_000 }) }),
)

function apply(path: string, change: typeof edit extends fc.Arbitrary<infer T> ? T : never): void {
  if (change.kind === 'size') truncateSync(path, change.size)
  const bytes = readFileSync(path)
  const fd = openSync(path, 'r+')
  const blockAt = (number: number) => bytes.subarray(number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES)
  if (change.kind === 'bytes') writeSync(fd, randomBytes(change.length), 0, change.length, change.at)
  if (change.kind === 'zeros') writeSync(fd, Buffer.alloc(BLOCK_BYTES), 0, BLOCK_BYTES, change.block * BLOCK_BYTES)
  if (change.kind === 'swap') {
    writeSync(fd, blockAt(change.b), 0, BLOCK_BYTES, change.a * BLOCK_BYTES)
    writeSync(fd, blockAt(change.a), 0, BLOCK_BYTES, change.b * BLOCK_BYTES)
  }
  closeSync(fd)
}

for (const key of [null, randomBytes(32)]) {
  it(`a large file is backed up as it is, however it changes (${key ? 'encrypted' : 'in the clear'})`, async (t) => {
    const agent = await testAgent(t, { key })
    const path = join(agent.filesOf('srv_a'), 'region')
    const copy = join(agent.filesOf('srv_b'), 'region')
    writeFileSync(path, randomBytes(SIZE))
    await agent.create('srv_a')
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 4 }), async (changes) => {
        for (const change of changes) apply(path, change)
        const { backupId } = await agent.create('srv_a')
        await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
        assert.ok(readFileSync(copy).equals(readFileSync(path)))
      }),
      { numRuns: 15 },
    )
  })
}

it('what is added for a large file is its changed blocks', async (t) => {
  const agent = await testAgent(t)
  const path = join(agent.filesOf('srv_a'), 'region')
  writeFileSync(path, randomBytes(SIZE))
  await agent.create('srv_a')
  apply(path, { kind: 'bytes', at: 3 * BLOCK_BYTES, length: BLOCK_BYTES })
  const { storedBytes } = await agent.create('srv_a')
  assert.ok(storedBytes > BLOCK_BYTES && storedBytes < 1.1 * BLOCK_BYTES, `${storedBytes} stored`)
})

it('a block whose print is known and that is no longer in the store is stored anew', async (t) => {
  const agent = await startAgent(temporaryFolder(t))
  t.after(() => agent.stop())
  const path = join(agent.filesOf('srv_a'), 'region')
  const content = randomBytes(SIZE)
  writeFileSync(path, content)
  const first = await agent.create('srv_a')
  await agent.backups.remove({ serverId: 'srv_a', backupId: first.backupId })
  const { storedBytes } = await agent.run({ kind: 'backups.reclaim' })
  assert.equal(storedBytes, 0)
  utimesSync(path, new Date(), new Date())
  const second = await agent.create('srv_a')
  assert.ok(second.storedBytes > SIZE)
  const copy = join(agent.filesOf('srv_b'), 'region')
  await agent.restore('srv_b', second.backupId, { sourceServerId: 'srv_a' })
  assert.ok(readFileSync(copy).equals(content))
})
