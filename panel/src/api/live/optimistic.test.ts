import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MutationObserver, QueryClient } from '@tanstack/react-query'
import { shownAtOnce } from './optimistic.ts'

const KEY = ['numbers']

function setUp(answer: Promise<unknown>) {
  const queries = new QueryClient()
  queries.setQueryData(KEY, [1, 2, 3])
  queries.setQueryData([...KEY, 'other'], [4])
  const mutation = new MutationObserver(queries, {
    mutationFn: (_taken: number) => answer,
    ...shownAtOnce<number[], number>(queries, { queryKey: KEY, exact: true }, (data, taken) =>
      data.filter((each) => each !== taken),
    ),
  })
  return { queries, mutation, numbers: () => queries.getQueryData(KEY) }
}

test('a change is shown before the service has answered, and nothing else changes', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { queries, mutation, numbers } = setUp(promise)
  const done = mutation.mutate(2)
  await new Promise(setImmediate)
  assert.deepEqual(numbers(), [1, 3])
  assert.deepEqual(queries.getQueryData([...KEY, 'other']), [4])
  resolve()
  await done
  assert.deepEqual(numbers(), [1, 3])
})

test('where the service refuses, all is as it was', async () => {
  const { promise, reject } = Promise.withResolvers<void>()
  const { mutation, numbers } = setUp(promise)
  const done = mutation.mutate(2)
  await new Promise(setImmediate)
  assert.deepEqual(numbers(), [1, 3])
  reject(new Error('No.'))
  await assert.rejects(done, /No\./)
  assert.deepEqual(numbers(), [1, 2, 3])
})
