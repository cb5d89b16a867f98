import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { BASE } from '../blocks/prior-blocks.ts'
import { BLOCK_BYTES, SECTOR_BYTES } from '../format/format.ts'
import { createSealer } from '../format/seal.ts'
import { createPatcher } from './worker-patch.ts'

const sealer = createSealer(null, 'sha-256')
const BLOCKS = 200

function scene(tookMs: () => number) {
  const base = randomBytes(BLOCK_BYTES)
  // All blocks of the file were the same.
  const row = new Float64Array(BASE.fields)
  row[BASE.storedLength] = BLOCK_BYTES
  row[BASE.rawLength] = BLOCK_BYTES
  const rows = Float64Array.from({ length: BLOCKS * BASE.fields }, (_, at) => row[at % BASE.fields] ?? 0)
  const names = Buffer.concat(Array.from({ length: BLOCKS }, () => sealer.idOf(base)))
  const prior = { names, bases: names, rows, packs: ['0'.repeat(32)] }
  let [clock, reads] = [0, 0]
  const get = () => {
    reads++
    clock += tookMs()
    return base
  }
  const openNow = () => ({ get, [Symbol.dispose]() {} })
  const now = Buffer.from(base)
  now.fill(1, 3 * SECTOR_BYTES, 4 * SECTOR_BYTES)
  const patcher = createPatcher(sealer, { openNow }, () => clock)
  const patch = (raw = now, block = 0) => patcher.patch(raw, prior, block)
  return { base, now, prior, patch, begin: patcher.begin, reads: () => reads }
}

it('gives the sectors that differ from what the block was', () => {
  const { now, patch } = scene(() => 0)
  const patched = patch()
  assert.equal(patched?.sectors, 1 << 3)
  assert.ok(patched?.bytes.equals(now.subarray(3 * SECTOR_BYTES, 4 * SECTOR_BYTES)))
})

it('gives nothing where what the block was cannot be read, or is another', () => {
  const { base, prior, patch } = scene(() => 0)
  base[0] = (base[0] ?? 0) ^ 1
  assert.equal(patch(), undefined)
  prior.rows[BASE.storedLength] = BLOCK_BYTES - 1
  assert.equal(patch(), undefined)
  prior.rows[BASE.storedLength] = 0
  assert.equal(patch(), undefined)
})

it('reads one in sixteen from a disk that is slow, and all again once it is not', () => {
  let took = 12
  const { patch, reads } = scene(() => took)
  for (let count = 0; count < 1000; count++) patch()
  assert.ok(reads() > 60 && reads() < 100, `${reads()} of 1000`)
  took = 0.2
  for (let count = 0; count < 1000; count++) patch()
  const before = reads()
  for (let count = 0; count < 1000; count++) assert.ok(patch())
  assert.equal(reads() - before, 1000)
})

it('takes a disk for no slower because of one long moment', () => {
  let took = 0.2
  const { patch } = scene(() => took)
  for (let count = 0; count < 100; count++) patch()
  took = 3000
  patch()
  took = 0.2
  for (let count = 0; count < 100; count++) assert.ok(patch())
})

it('reads few blocks of a part that was written anew, and all again where one is found that was not', () => {
  const { now, patch, begin, reads } = scene(() => 0)
  begin()
  let block = 0
  for (; block < 64; block++) assert.equal(patch(randomBytes(BLOCK_BYTES), block), undefined)
  assert.ok(reads() < 10, `${reads()} of 64`)
  while (!patch(now, block)) block++
  assert.ok(block < 64 + 16, `${block}`)
  for (const end = block + 64; block < end; ) assert.ok(patch(now, ++block))
})

it('reads all blocks that are written anew here and there, between others that are as they were', () => {
  const { patch, begin, reads } = scene(() => 0)
  begin()
  for (let block = 0; block < 128; block += 2) patch(randomBytes(BLOCK_BYTES), block)
  assert.equal(reads(), 64)
})

it('reads the first blocks of the next part, whatever the last one was', () => {
  const { now, patch, begin } = scene(() => 0)
  for (let block = 0; block < 64; block++) patch(randomBytes(BLOCK_BYTES), block)
  begin()
  assert.ok(patch(now, 64))
})
