import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { FRAME_BYTES, ID_BYTES } from '../format/format.ts'
import { BLOCK, decodeJobs, FRAME, type WantedBlock } from './decode-jobs.ts'

const wantedBlock = fc.record({
  frame: fc.nat(200),
  inner: fc.nat(15),
  fd: fc.integer({ min: -1, max: 1000 }),
  offset: fc.nat(2 ** 40),
  id: fc.uint8Array({ minLength: ID_BYTES + 3, maxLength: ID_BYTES + 3 }),
})

it('lists every block once, in the order of the pack, in arrays of just their size', () => {
  fc.assert(
    fc.property(fc.array(wantedBlock, { maxLength: 400 }), (chosen) => {
      const wanted = chosen.map(({ frame, inner, fd, offset, id }): WantedBlock => {
        const place = { offset: frame * 1000, storedLength: 1000, rawLength: FRAME_BYTES, codec: frame % 7, crc: frame }
        const target = fd < 0 ? null : { fd, directFd: fd % 2 ? fd + 1 : -1 }
        return {
          frame: place,
          inner: inner * 100,
          length: 100,
          ids: id,
          idAt: 3,
          target,
          offset,
          sectors: inner,
        }
      })
      const listed: string[] = []
      let before = -1
      for (const { frames, blocks, ids } of decodeJobs('pack', wanted, { isStrict: false })) {
        for (const array of [frames, blocks, ids]) assert.equal(array.buffer.byteLength, array.byteLength)
        let block = 0
        for (let row = 0; row < frames.length; row += FRAME.fields) {
          const frame = frames[row + FRAME.offset] ?? -1
          assert.ok(frame > before)
          before = frame
          const isWhole = [1000, FRAME_BYTES, (frame / 1000) % 7, frame / 1000]
          assert.deepEqual([...frames.subarray(row + 1, row + FRAME.blockCount)], isWhole)
          for (let left = frames[row + FRAME.blockCount] ?? 0; left > 0; left--, block++) {
            const fields = blocks.subarray(block * BLOCK.fields, (block + 1) * BLOCK.fields)
            listed.push(`${frame} ${fields.join(' ')} ${ids.subarray(block * ID_BYTES, (block + 1) * ID_BYTES)}`)
          }
        }
        assert.equal(block * ID_BYTES, ids.length)
        assert.ok(frames.length / FRAME.fields <= 32)
      }
      const expected = wanted.map(({ frame, inner, length, ids, target, offset, sectors }) => {
        const { fd, directFd } = target ?? { fd: -1, directFd: -1 }
        return `${frame.offset} ${[inner, length, fd, directFd, offset, -1, sectors].join(' ')} ${ids.subarray(3)}`
      })
      assert.deepEqual(listed.sort(), expected.sort())
    }),
  )
})
