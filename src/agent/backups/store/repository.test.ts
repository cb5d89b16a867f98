import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { temporaryFolder } from '../backups.testing.ts'
import { type BlockIndex, createBlockIndex } from '../blocks/block-index.ts'
import { createTableBuilder } from '../format/pack-table.ts'
import { openRepository } from './repository.ts'

function indexOf(packId: string, ids: Buffer[]): BlockIndex {
  const table = createTableBuilder()
  for (const [number, id] of ids.entries()) {
    table.addFrame({ offset: number, storedLength: 1, rawLength: 1, codec: 0, crc: 0 }, 1)
    table.addBlock(id, 0, 0, 1)
  }
  const index = createBlockIndex()
  index.addTable(packId, table.take())
  return index
}

it('of backups that end at the same time, every block is found, whichever index replaces which', async (t) => {
  const blobs = { kind: 'local', dir: temporaryFolder(t) } as const
  const repository = await openRepository({ blobs, key: null, threads: 1 })
  t.after(() => repository.close())
  // Every chance to let others run is taken.
  let now = performance.now()
  t.mock.method(performance, 'now', () => (now += 100))
  const some = (count: number) => Array.from({ length: count }, () => randomBytes(32))
  const first = some(16_350)
  // A twin that ran at the same time: the index hardly grows while it is taken in.
  const backups = [first, [...first.slice(0, 15_900), ...some(400)], some(17_000), some(40_000), some(5)]
  const published = backups.map((ids, number) =>
    repository.publish(new Map([[`pack ${number}`, 1]]), indexOf(`pack ${number}`, ids)),
  )
  await Promise.all(published)
  for (const [number, ids] of backups.entries()) {
    const missing = ids.filter((id) => repository.index.find(id) < 0)
    assert.equal(missing.length, 0, `of backup ${number}`)
  }
  assert.equal(repository.packs.size, backups.length)
})
