import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { trimmedBound, trimSectors, untrimSectors } from './sectors.ts'

/** Pieces of bytes and of zeros, as sectors have them. */
const blocks = fc
  .array(fc.tuple(fc.uint8Array({ maxLength: 3000 }), fc.nat({ max: 9000 })), { maxLength: 12 })
  .map((pieces) => Buffer.concat(pieces.flatMap(([bytes, zeros]) => [bytes, Buffer.alloc(zeros)])))

/** Into memory that held something else. */
function untrim(stored: Buffer, rawLength: number): Buffer {
  const raw = Buffer.alloc(rawLength, 0xff)
  untrimSectors(stored, raw)
  return raw
}

const trim = (raw: Buffer) => trimSectors(raw, Buffer.alloc(trimmedBound(raw.length)))

it('gives back every byte, and is never longer than its bound', () => {
  fc.assert(
    fc.property(blocks, (raw) => {
      const stored = Buffer.from(trim(raw))
      assert.deepEqual(untrim(stored, raw.length), raw)
    }),
  )
})

it('leaves out the zeros at the end of each sector and no others', () => {
  const raw = Buffer.alloc(3 * 4096 + 100)
  raw.write('first', 10)
  raw.write('third', 2 * 4096)
  raw[raw.length - 1] = 1
  assert.equal(trim(raw).length, 8 + 15 + 0 + 5 + 100)
})

it('a flipped bit anywhere changes what is read or is refused', () => {
  const raw = Buffer.alloc(9000)
  for (let at = 0; at < raw.length; at += 1 + (at % 7)) if (at % 4096 < 2000) raw[at] = 1 + (at % 255)
  const stored = Buffer.from(trim(raw))
  for (let bit = 0; bit < stored.length * 8; bit++) {
    const flipped = Buffer.from(stored)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    let read: Buffer
    try {
      read = untrim(flipped, raw.length)
    } catch {
      continue
    }
    assert.notDeepEqual(read, raw, `bit ${bit}`)
  }
})
