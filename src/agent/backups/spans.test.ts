import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { openLocalStore } from '../../blobs/local.ts'
import type { BlobStore, ByteRange } from '../../blobs/store.ts'
import { assertSameTree, snapshot, type TestAgent, temporaryFolder, testAgent } from './backups.testing.ts'
import { BLOCK_BYTES, packBlob } from './format/format.ts'
import { createGmac, GMAC_KEY_BYTES } from './format/gmac.ts'
import { decodeTable, spansIn } from './format/pack-table.ts'
import { CODEC_ZSTD, createSealer } from './format/seal.ts'
import { decodeSpans } from './format/spans.ts'
import { leaveAll, mirror, openBucket } from './offsite.testing.ts'
import { createPack, readPackTable } from './store/packs.ts'
import { decodeJobs, NOT_WRITTEN } from './workers/decode-jobs.ts'
import { createLane, decodeFrames } from './workers/worker-decode.ts'
import { type FetchedRange, packRanges, SLOT_BYTES } from './workers/worker-jobs.ts'
import { readFiles } from './workers/worker-read.ts'

const MIB = 1024 * 1024

interface DecodeOptions {
  isStrict?: boolean
  isWanted?(index: number): boolean
  fetched?: FetchedRange[]
  /** Where the disk cannot read. */
  badAt?: number
}

/** A pack as a backup of one file makes it, and a worker's own decoding of it, with the blocks that it has named. */
async function packOf(t: TestContext, content: Buffer, spanKey: Buffer | null = randomBytes(GMAC_KEY_BYTES)) {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'file'), content)
  mkdirSync(join(folder, 'store'))
  const blobs = await openLocalStore(join(folder, 'store'), { clear: false })
  const sealer = createSealer(null, 'sha-256')
  const slot = new SharedArrayBuffer(SLOT_BYTES)
  const range = { fd: -1, address: join(folder, 'file'), from: 0, to: content.length }
  const files = packRanges([
    { ...range, size: 0n, mtimeNs: 0n, ctimeNs: 0n, isPrinted: false, known: null, prior: null },
  ])
  const gmac = spanKey && createGmac(spanKey)
  const read = readFiles({ sealer, patcher: null, print: null, gmac }, { kind: 'read', files, filter: null, slot })
  const pack = await createPack(blobs, spanKey)
  pack.append(new Uint8Array(slot, 0, read.used), read.table, read.spans)
  const { packId, table } = await pack.finish()
  const frames = decodeTable(table).filter(({ blocks }) => blocks.length > 0)
  const named: string[] = []
  const counting = {
    ...sealer,
    nameTo(target: Buffer, at: number, block: Uint8Array) {
      sealer.nameTo(target, at, block)
      named.push(target.toString('hex', at, at + 32))
    },
  }
  async function decode(options: DecodeOptions) {
    const { isStrict = false, isWanted = () => true, fetched, badAt = -1 } = options
    const reads: ByteRange[] = []
    const watched: BlobStore = {
      ...blobs,
      openNow(name) {
        const reader = blobs.openNow?.(name)
        assert.ok(reader)
        return {
          ...reader,
          get(range, into) {
            reads.push(range)
            if (range.offset > badAt || badAt >= range.offset + range.length) return reader.get(range, into)
            throw Object.assign(new Error('a bad sector'), { code: 'EIO' })
          },
        }
      },
    }
    const wanted = frames
      .filter((_, index) => isWanted(index))
      .flatMap((frame) =>
        frame.blocks.map(({ id, ...place }) => ({ frame, ...place, ids: id, idAt: 0, ...NOT_WRITTEN })),
      )
    named.length = 0
    const damaged: string[] = []
    const spans = isStrict ? null : spansIn(table)
    for (const job of decodeJobs(packId, wanted, { isStrict, spans })) {
      const done = await decodeFrames({ sealer: counting, blobs: watched }, createLane(), {
        kind: 'decode',
        ...job,
        ...(fetched ? { fetched } : {}),
      })
      for (const { blocks } of done.damaged) damaged.push(...blocks.map((id) => Buffer.from(id).toString('hex')))
    }
    return { damaged, reads, named: [...named], wanted: wanted.map(({ ids }) => Buffer.from(ids).toString('hex')) }
  }
  return { path: join(folder, 'store', packBlob(packId)), frames, table, decode }
}

it('blocks in a sound span are not named again, and those of frames that zstd has compressed are', async (t) => {
  const random = await packOf(t, randomBytes(3 * MIB))
  assert.deepEqual((await random.decode({})).named, [])
  assert.equal((await random.decode({ isStrict: true })).named.length, 48)
  const text = await packOf(t, Buffer.from('a word and another, '.repeat(100_000)))
  assert.ok(text.frames.some(({ codec }) => codec === CODEC_ZSTD))
  const { named, wanted, damaged } = await text.decode({})
  assert.deepEqual(named, wanted)
  assert.deepEqual(damaged, [])
})

it('a byte that has changed anywhere in a span is found, and laid to the block that it is in', async (t) => {
  const { path, frames, decode } = await packOf(t, randomBytes(3 * MIB))
  const whole = readFileSync(path)
  for (const [index, frame] of frames.entries()) {
    const changed = Buffer.from(whole)
    const at = frame.offset + ((index * 7919) % frame.storedLength)
    changed[at] = (changed[at] ?? 0) ^ (1 << (index % 8))
    writeFileSync(path, changed)
    const { damaged } = await decode({})
    assert.deepEqual(
      damaged,
      frame.blocks.map(({ id }) => Buffer.from(id).toString('hex')),
    )
  }
})

it('where the list of spans is damaged, or there is none, every block is named', async (t) => {
  const { path, table, decode } = await packOf(t, randomBytes(2 * MIB))
  const place = spansIn(table)
  assert.ok(place)
  const whole = readFileSync(path)
  whole[place.offset + 20] = (whole[place.offset + 20] ?? 0) ^ 1
  writeFileSync(path, whole)
  const { named, wanted, damaged } = await decode({})
  assert.deepEqual([named, damaged], [wanted, []])
  const without = await packOf(t, randomBytes(2 * MIB), null)
  assert.equal(spansIn(without.table), undefined)
  const plain = await without.decode({})
  assert.deepEqual([plain.named, plain.damaged], [plain.wanted, []])
})

it('of a span that was fetched in part, what was fetched is named', async (t) => {
  const { path, frames, table, decode } = await packOf(t, randomBytes(2 * MIB))
  const place = spansIn(table)
  assert.ok(place)
  const bytes = readFileSync(path)
  const memory = new SharedArrayBuffer(bytes.length)
  bytes.copy(Buffer.from(memory))
  const part = (offset: number, end: number) => ({ offset, length: end - offset, bytes: memory, at: offset })
  const list = part(place.offset, place.offset + place.length)
  const offsets = frames.map(({ offset }) => offset)
  // Of its beginning, of its middle, of its end; each time enough of it is wanted.
  for (const [from, to] of [
    [0, 10],
    [3, 12],
    [6, 16],
  ] as const) {
    const isWanted = (index: number) => index >= from && index < to
    const fetched = [part(offsets[from] ?? 0, offsets[to] ?? 0), list]
    const { named, wanted, damaged } = await decode({ isWanted, fetched })
    assert.deepEqual([named, damaged, wanted.length], [wanted, [], to - from])
  }
  // The first and the last of it, and nothing in between.
  const ends = [part(offsets[0] ?? 0, offsets[5] ?? 0), part(offsets[10] ?? 0, offsets[15] ?? 0), list]
  const apart = await decode({ isWanted: (index) => index < 5 || (index >= 10 && index < 15), fetched: ends })
  assert.deepEqual([apart.named, apart.damaged, apart.wanted.length], [apart.wanted, [], 10])
})

it('a sector that cannot be read costs one read more, and the blocks that it is in', async (t) => {
  const { frames, decode } = await packOf(t, randomBytes(MIB))
  const isWanted = (index: number) => index % 2 === 0
  const hits = (reads: ByteRange[], at: number) =>
    reads.filter(({ offset, length }) => offset <= at && at < offset + length).length
  const [unwanted = 0, needed = 0] = [frames[13]?.offset, frames[12]?.offset]
  const beside = await decode({ isWanted, badAt: unwanted })
  assert.deepEqual([beside.damaged, hits(beside.reads, unwanted)], [[], 1])
  const within = await decode({ isWanted, badAt: needed })
  assert.deepEqual([within.damaged.length, hits(within.reads, needed)], [1, 2])
})

const packsOf = (agent: TestAgent) =>
  readdirSync(join(agent.storeDir, 'packs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

async function tableIn(agent: TestAgent, path: string) {
  const { blobs } = await agent.backups.repository()
  return (await readPackTable(blobs, path.slice(path.lastIndexOf('/') + 1))).table
}

it('a pack of a backup ends with the list of its spans; an encrypted one has none', async (t) => {
  for (const key of [null, randomBytes(32)]) {
    const agent = await testAgent(t, { key })
    writeFileSync(join(agent.filesOf('srv_a'), 'large'), randomBytes(5 * MIB))
    await agent.create('srv_a')
    const [pack = ''] = packsOf(agent)
    const place = spansIn(await tableIn(agent, pack))
    assert.equal(place === undefined, key !== null)
    if (!place) continue
    const stored = readFileSync(pack).subarray(place.offset, place.offset + place.length)
    assert.ok(decodeSpans(pack.slice(-32), stored))
    const { index } = await agent.backups.repository()
    assert.deepEqual(
      [...index.packNotes.values()].map(({ spans }) => spans),
      [place],
    )
  }
})

it('a byte flipped in the list is found by a verify, costs no restore anything, and goes with the next reclaim', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'large'), randomBytes(3 * MIB))
  const before = snapshot(root)
  const { backupId } = await agent.create('srv_a')
  const [pack = ''] = packsOf(agent)
  const place = spansIn(await tableIn(agent, pack))
  assert.ok(place)
  const bytes = readFileSync(pack)
  bytes[place.offset] = (bytes[place.offset] ?? 0) ^ 1
  writeFileSync(pack, bytes)
  const target = agent.filesOf('srv_b')
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(target), before)
  const { damage } = await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')
  assert.deepEqual(
    damage.map(({ blob, blockId, what }) => [
      pack.endsWith(blob),
      blockId,
      what.endsWith('the list of its spans is damaged'),
    ]),
    [[true, null, true]],
  )
  await agent.run({ kind: 'backups.reclaim' })
  assert.deepEqual((await agent.run({ kind: 'backups.verify', backupId }, 'srv_a')).damage, [])
})

it('a reclaim copies blocks unread and vouches for none: what was damaged before is found by the restore', async (t) => {
  const agent = await testAgent(t)
  writeFileSync(join(agent.filesOf('srv_a'), 'large'), randomBytes(2 * MIB))
  const { backupId } = await agent.create('srv_a')
  const [pack = ''] = packsOf(agent)
  const bytes = readFileSync(pack)
  bytes[MIB] = (bytes[MIB] ?? 0) ^ 1
  writeFileSync(pack, bytes)
  // As far as anybody knows it is damaged elsewhere: so it is written anew.
  const { recordDamage } = await agent.backups.repository()
  await recordDamage([], [pack.slice(pack.lastIndexOf('/') + 1)])
  const { packsRewritten } = await agent.run({ kind: 'backups.reclaim' })
  assert.equal(packsRewritten, 1)
  assert.ok(!packsOf(agent).includes(pack))
  const target = agent.filesOf('srv_b')
  await assert.rejects(agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' }), { code: 'backup_damaged' })
  assert.deepEqual(snapshot(target), {})
})

it('from the copy the list comes with the rest of the pack, in no request of its own', async (t) => {
  const bucket = openBucket(temporaryFolder(t))
  const agent = await testAgent(t, { offsite: bucket.open })
  const root = agent.filesOf('srv_a')
  writeFileSync(join(root, 'large'), randomBytes(20 * BLOCK_BYTES))
  const before = snapshot(root)
  const { backupId } = await agent.create('srv_a')
  mirror(agent, bucket)
  await leaveAll(agent)
  const target = agent.filesOf('srv_b')
  const from = bucket.requests.length
  await agent.restore('srv_b', backupId, { sourceServerId: 'srv_a' })
  assertSameTree(snapshot(target), before)
  assert.equal(bucket.requests.slice(from).filter((name) => name.startsWith('packs/')).length, 1)
})
