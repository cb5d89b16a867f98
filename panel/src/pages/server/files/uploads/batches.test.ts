import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Queued, takeBatch } from './batches.ts'

const KIB = 1024

function queued(name: string, bytes = 10, more: Partial<Queued['kept'] & { isAlone: boolean }> = {}): Queued {
  const { isAlone = false, ...kept } = more
  const file = new File([new Uint8Array(bytes)], name)
  return {
    isAlone,
    kept: {
      key: name,
      tab: '',
      owner: 'a',
      serverId: 's',
      directory: '/',
      name,
      file,
      startedAt: 0,
      url: null,
      ...kept,
    },
  }
}

function batchesOf(queue: Queued[], isReady: (each: Queued) => boolean = () => true): string[][] {
  const batches: string[][] = []
  for (let batch = takeBatch(queue, isReady); batch.length > 0; batch = takeBatch(queue, isReady))
    batches.push(batch.map(({ kept }) => kept.name))
  return batches
}

test('small files go together, a large one by itself, and nobody waits for it to be first', () => {
  assert.deepEqual(batchesOf([queued('a'), queued('large', 300 * KIB), queued('b'), queued('c')]), [
    ['a', 'b', 'c'],
    ['large'],
  ])
})

test('what goes together has one folder, one owner, no name twice, and names that a form can carry', () => {
  const queue = [
    queued('a'),
    queued('a'),
    queued('b', 10, { directory: '/mods' }),
    queued('c', 10, { owner: 'b' }),
    queued('100%.txt'),
    queued('"d"'),
    queued('e', 10, { url: 'https://…/upl_1' }),
    queued('f', 10, { isAlone: true }),
    queued('g'),
  ]
  assert.deepEqual(batchesOf(queue), [['a', 'g'], ['a'], ['b'], ['c'], ['100%.txt'], ['"d"'], ['e'], ['f']])
})

test('no request has more than a hundred files, nor more than two megabytes', () => {
  const many = batchesOf(Array.from({ length: 250 }, (_, index) => queued(String(index))))
  assert.deepEqual(
    many.map(({ length }) => length),
    [100, 100, 50],
  )
  const heavy = batchesOf(Array.from({ length: 20 }, (_, index) => queued(String(index), 200 * KIB)))
  assert.deepEqual(
    heavy.map(({ length }) => length),
    [10, 10],
  )
})

test('what is not ready stays in the queue', () => {
  const queue = [queued('a', 10, { owner: 'b' }), queued('c')]
  assert.deepEqual(
    batchesOf(queue, ({ kept }) => kept.owner === 'a'),
    [['c']],
  )
  assert.equal(queue.length, 1)
})
