import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tilesOf } from './treemap.ts'

test('the tiles fill the whole, each by its share, without overlap', () => {
  const sizes = [6, 6, 4, 3, 2, 2, 1, 0]
  const tiles = tilesOf(
    sizes.map((sizeBytes) => ({ sizeBytes })),
    2,
  )
  assert.equal(tiles.length, 7)
  for (const { item, x, y, width, height } of tiles) {
    assert.ok(Math.abs(width * height - (item.sizeBytes / 24) * 10_000) < 1e-6)
    assert.ok(x >= 0 && y >= 0 && x + width < 100.001 && y + height < 100.001)
    const others = tiles.filter((other) => other.item !== item)
    for (const other of others) {
      const isApart =
        other.x >= x + width - 1e-9 ||
        x >= other.x + other.width - 1e-9 ||
        other.y >= y + height - 1e-9 ||
        y >= other.y + other.height - 1e-9
      assert.ok(isApart)
    }
  }
})

test('nothing, or only what is empty, has no tiles', () => {
  assert.deepEqual(tilesOf([], 1), [])
  assert.deepEqual(tilesOf([{ sizeBytes: 0 }], 1), [])
})
