import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import fc from 'fast-check'
import { createGmac, GMAC_KEY_BYTES } from './gmac.ts'
import { createSpanBuilder, decodeSpans, encodeSpans, SPAN_BYTES, shiftSpans } from './spans.ts'

const key = randomBytes(GMAC_KEY_BYTES)
const FRAMES_BYTES = 4 * 1024 * 1024
const content = randomBytes(FRAMES_BYTES)

/** The ends of frames of these lengths, and their spans in a pack in which they begin at `from`. */
function built(lengths: number[], from: number) {
  const spans = createSpanBuilder(createGmac(key))
  const ends: number[] = []
  for (const length of lengths) {
    ends.push((ends.at(-1) ?? 0) + length)
    spans.addFrame(content, ends.at(-1) ?? 0)
  }
  return { ends, list: encodeSpans('00', key, [shiftSpans(spans.take(content), from)]) }
}

it('every frame is in one span, none is larger than a reader holds, and each is told by its own bytes alone', () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 130_000 }), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(lengths, fc.integer({ min: 0, max: 1_000_000 }), fc.nat(), (given, from, flipped) => {
      const { ends, list } = built(given, from)
      const spans = decodeSpans('00', list)
      assert.ok(spans)
      let begin = 0
      for (const end of ends) {
        const span = spans.at(from + begin)
        assert.ok(span && span.length <= SPAN_BYTES)
        assert.ok(span.offset <= from + begin && from + end <= span.offset + span.length)
        const bytes: Buffer = Buffer.from(content.subarray(span.offset - from, span.offset - from + span.length))
        assert.ok(spans.isSound(span, bytes))
        assert.ok(!spans.isSound(span, bytes.subarray(1)))
        const at = flipped % bytes.length
        bytes[at] = (bytes[at] ?? 0) ^ (1 << (flipped % 8))
        assert.ok(!spans.isSound(span, bytes))
        begin = end
      }
      assert.equal(spans.at(from + begin), undefined)
      assert.equal(from === 0 ? undefined : decodeSpans('00', list)?.at(from - 1), undefined)
    }),
    { numRuns: 60 },
  )
})

it('a list that has changed in any byte, or is cut short anywhere, is none', () => {
  const { list } = built([100_000, 900_000, 130_000, 7], 4096)
  for (let at = 0; at < list.length; at++) {
    const changed = Buffer.from(list)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(decodeSpans('00', changed), undefined)
    assert.equal(decodeSpans('00', list.subarray(0, at)), undefined)
  }
})

it('without a checksum that is worth its time there are no spans', () => {
  const spans = createSpanBuilder(null)
  spans.addFrame(content, 1000)
  assert.equal(spans.take(content).length, 0)
})
