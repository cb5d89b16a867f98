import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newEntry } from '../tree/backup-entries.ts'
import type { Staged } from './restore-staged.ts'
import { createStagedQueue } from './staged-queue.ts'

function staged(number: number, folder: Staged['folder']): Staged {
  return { entry: { ...newEntry(`/${number}`, 'file'), key: '' }, number, folder, name: String(number) }
}

function filled(...folders: Staged['folder'][]) {
  const queue = createStagedQueue()
  for (const [number, folder] of folders.entries()) queue.add(staged(number, folder))
  return queue
}
const numbers = (staged: readonly Staged[]) => staged.map(({ number }) => number)

test('what is taken is of folders of which nothing is being built, while there is some', () => {
  const queue = filled(1, 1, 1, 2, 2, undefined)
  assert.deepEqual([queue.length, queue.free], [6, 6])
  const first = queue.take(2)
  assert.deepEqual(numbers(first), [0, 1])
  assert.deepEqual([queue.length, queue.free], [4, 3])
  const second = queue.take(2)
  assert.deepEqual(numbers(second), [3, 4])
  assert.deepEqual(numbers(queue.take(1)), [5])
  assert.deepEqual([queue.length, queue.free], [1, 0])
  queue.built(first)
  assert.equal(queue.free, 1)
  assert.deepEqual(numbers(queue.take(2)), [2])
  assert.deepEqual([queue.length, queue.free], [0, 0])
})

test('small folders are taken together, and those in use where there are too few others', () => {
  const queue = filled(1, 2, 3, 4, 5, 5, 5, 5, 6)
  assert.deepEqual(numbers(queue.take(5)), [0, 1, 2, 3, 4])
  const again = queue.take(2)
  assert.deepEqual(numbers(again), [8, 5])
  queue.built(again)
  assert.deepEqual([queue.length, queue.free], [2, 0], 'the first still has some of it')
  queue.add(staged(9, 1))
  assert.equal(queue.free, 0)
  assert.deepEqual(numbers(queue.take(9)), [9, 6, 7])
  assert.deepEqual(queue.take(9), [])
})

test('everything is taken once, in whatever order it is built, and no folder twice at a time without need', () => {
  const queue = filled(...Array.from({ length: 1000 }, (_, index) => index % 17))
  const seen: number[] = []
  const building: Staged[][] = []
  for (let turn = 0; queue.length > 0; turn++) {
    assert.ok(turn < 100)
    const isEnough = queue.free >= 64
    const taken = queue.take(64)
    const inUse = new Set(building.flat().map(({ folder }) => folder))
    if (isEnough) assert.ok(!taken.some(({ folder }) => inUse.has(folder)))
    seen.push(...numbers(taken))
    building.push(taken)
    if (building.length === 3) queue.built(building.splice(turn % 3, 1)[0] ?? [])
  }
  for (const taken of building) queue.built(taken)
  assert.deepEqual(
    seen.sort((a, b) => a - b),
    [...Array(1000).keys()],
  )
  assert.equal(queue.free, 0)
})
