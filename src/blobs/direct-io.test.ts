import assert from 'node:assert/strict'
import { it } from 'node:test'
import { alignedBuffer, alignedSharedBuffer, isAligned, UNIT_BYTES } from './direct-io.ts'

it('knows what begins at a page', () => {
  for (const bytes of [alignedBuffer(3 * UNIT_BYTES + 1), new Uint8Array(alignedSharedBuffer(3 * UNIT_BYTES + 1))]) {
    assert.ok(bytes.length > 3 * UNIT_BYTES)
    assert.deepEqual(
      [0, 1, UNIT_BYTES - 1, UNIT_BYTES].map((from) => isAligned(bytes.subarray(from))),
      [true, false, false, true],
    )
  }
  assert.equal(isAligned(Buffer.alloc(UNIT_BYTES)), false)
  assert.equal(isAligned(new Uint8Array(new SharedArrayBuffer(UNIT_BYTES))), false)
})
