import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { tableOf } from '../format/pack-table.ts'
import { filterHas } from './block-filter.ts'
import { createBlockIndex } from './block-index.ts'

const tableWith = (id: Uint8Array) =>
  tableOf({ offset: 0, storedLength: 1, rawLength: 1, codec: 0, crc: 0, blocks: [{ id, inner: 0, length: 1 }] })

it('blocks that are added while the hints of other backups fill the filter are found', () => {
  const index = createBlockIndex()
  index.filter()
  for (let count = 0; count < 10_000; count++) index.hint(randomBytes(32))
  const ids = Array.from({ length: 6000 }, () => randomBytes(32))
  for (const id of ids) {
    index.addTable('pack', tableWith(id))
    for (let count = 0; count < 3; count++) index.hint(randomBytes(32))
  }
  const filter = new Uint32Array(index.filter())
  for (const id of ids) assert.ok(index.find(id) >= 0 && filterHas(filter, id))
  assert.equal(index.find(randomBytes(32)), -1)
  assert.equal(filterHas(filter, randomBytes(32)), false)
})

it('an index that succeeds another has its blocks, knows its damage, and keeps what was stored anew', () => {
  const [kept, hurt, healed, own] = Array.from({ length: 4 }, () => randomBytes(32)) as [Buffer, Buffer, Buffer, Buffer]
  const before = createBlockIndex()
  for (const id of [kept, hurt, healed]) before.addTable('old', tableWith(id))
  for (const id of [hurt, healed]) before.markDamaged(before.find(id))
  const after = createBlockIndex()
  for (const id of [own, healed]) after.addTable('new', tableWith(id))
  after.succeed(before)
  assert.deepEqual(
    [kept, hurt, healed, own].map((id) => [after.find(id) >= 0, after.place(after.findAny(id)).packId]),
    [
      [true, 'old'],
      [false, 'old'],
      [true, 'new'],
      [true, 'new'],
    ],
  )
  assert.equal(after.losses, before.losses)
  const filter = new Uint32Array(after.filter())
  for (const id of [kept, healed, own]) assert.ok(filterHas(filter, id))
})
