import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FRAME_BYTES } from './format.ts'
import { createSealer, type Sealer } from './seal.ts'

const sealer = createSealer(null, 'blake2b-256')
const TIMES = 200
const MIB = 1024 ** 2

/** Text that shrinks. */
const frame = (length: number) => Buffer.from('0123456789abcdef'.repeat(Math.ceil(length / 16))).subarray(0, length)

/** What buffers hold more than before, after doing it many times: 25 MiB where each leaves one of a frame's size. */
function heldBytes(work: (sealer: Sealer) => void): number {
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < TIMES; i++) work(sealer)
  return process.memoryUsage().arrayBuffers - before
}

test('compressing and decompressing into given memory leaves none behind', () => {
  const raw = frame(FRAME_BYTES)
  const into = Buffer.alloc(2 * FRAME_BYTES)
  const encoded = sealer.encode(raw)
  assert.ok(heldBytes(() => sealer.encode(raw, false, into)) < 4 * MIB)
  assert.ok(heldBytes(() => sealer.decode(encoded.bytes, encoded, true, into)) < 4 * MIB)
})

test('what is compressed comes back, whatever its size and whether it has room', () => {
  for (const length of [64, 1000, Buffer.poolSize / 2 - 1, Buffer.poolSize / 2, Buffer.poolSize, FRAME_BYTES]) {
    const raw = frame(length)
    for (const room of [undefined, Buffer.alloc(10), Buffer.alloc(FRAME_BYTES)]) {
      // Small buffers share their memory: that of others must not go with ours.
      const neighbour = Buffer.from('neighbour')
      const encoded = sealer.encode(raw, false, room)
      const stored = { ...encoded, bytes: Buffer.from(encoded.bytes) }
      assert.deepEqual(Buffer.from(sealer.decode(stored.bytes, stored, true, room)), raw)
      assert.equal(String(neighbour), 'neighbour')
    }
  }
})
