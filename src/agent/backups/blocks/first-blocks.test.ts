import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { ID_BYTES } from '../format/format.ts'
import { createFirsts } from './first-blocks.ts'

/** Few words at either end, so that many begin alike and some are the same. */
const id = fc
  .tuple(fc.nat({ max: 2 }), fc.nat({ max: 3 }))
  .map(([first, last]) => Buffer.concat([Buffer.from([first]), Buffer.alloc(ID_BYTES - 2), Buffer.from([last])]))

it('tells the first of each from those that follow', () => {
  fc.assert(
    fc.property(fc.array(id, { minLength: 1, maxLength: 40 }), (ids) => {
      const isFirst = createFirsts(Buffer.concat(ids), ids.length)
      const texts = ids.map((each) => each.toString('hex'))
      assert.deepEqual(
        ids.map((_, index) => isFirst(index * ID_BYTES)),
        texts.map((text, index) => texts.indexOf(text) === index),
      )
    }),
  )
})
