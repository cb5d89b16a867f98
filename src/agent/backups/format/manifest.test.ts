import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import fc from 'fast-check'
import { temporaryFolder } from '../backups.testing.ts'
import { createBackups, named, sorted, treeOf } from './manifest.testing.ts'

for (const key of [null, randomBytes(32)]) {
  it(`chunks that are taken as they stand hold what they held (${key ? 'encrypted' : 'in the clear'})`, async (t) => {
    const { backUp } = await createBackups(temporaryFolder(t), key)
    const numbers = fc.nat({ max: 12_000 })
    const change = fc.record({
      changed: fc.array(numbers, { maxLength: 4 }),
      deleted: fc.oneof(fc.array(numbers, { maxLength: 4 }), fc.constant([...Array(3000).keys()])),
      added: fc.array(numbers, { maxLength: 4 }),
    })
    const tree = new Map(Array.from({ length: 6000 }, (_, number) => [named(number * 2), 1]))
    let { manifest } = await backUp(tree)
    let version = 1
    await fc.assert(
      fc.asyncProperty(change, async ({ changed, deleted, added }) => {
        version++
        for (const number of deleted) tree.delete(named(number))
        for (const number of changed) if (tree.has(named(number))) tree.set(named(number), version)
        for (const number of added) tree.set(named(number), version)
        manifest = (await backUp(tree, manifest)).manifest
        assert.deepEqual(await treeOf(manifest), sorted(tree))
        const some = named(2 * (version % 6000))
        assert.equal((await manifest.find(some))?.path, tree.has(some) ? some : undefined)
      }),
      { numRuns: 10 },
    )
  })
}

it('of a tree that has hardly changed, nearly all chunks are taken as they stand; small ones do not become many', async (t) => {
  const { backUp } = await createBackups(temporaryFolder(t), null)
  const tree = new Map(Array.from({ length: 12_000 }, (_, number) => [named(number * 2), 1]))
  let last = await backUp(tree)
  const chunks = last.manifest.places.length
  last = await backUp(tree, last.manifest)
  assert.equal(last.taken, 1)
  tree.set(named(8_001), 1)
  last = await backUp(tree, last.manifest)
  assert.ok(chunks > 4 && last.taken === (chunks - 1) / chunks, `${last.taken} of ${chunks} taken`)
  for (let round = 0; round < 10; round++) {
    tree.set(named(900_000 + round), 1)
    last = await backUp(tree, last.manifest)
  }
  assert.ok(last.manifest.places.length <= chunks + 1)
})
