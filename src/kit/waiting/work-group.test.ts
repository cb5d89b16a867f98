import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorkGroup, forEachAtOnce } from './work-group.ts'

test('no more than so many run at once, and room comes when one ends', async () => {
  const group = createWorkGroup(2)
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  group.start(first.promise)
  await group.room()
  group.start(second.promise)
  assert.equal(group.isFull(), true)
  const room = group.room()
  first.resolve()
  await room
  assert.equal(group.size, 1)
  second.resolve()
  await group.drain()
  assert.equal(group.size, 0)
})

test('a group fails as the first that failed, once all have ended, and is of use again', async () => {
  const group = createWorkGroup(3)
  const last = Promise.withResolvers<void>()
  group.start(last.promise)
  group.start(Promise.reject(new Error('first')))
  await group.next()
  group.start(Promise.reject(new Error('second')))
  await group.next()
  assert.throws(() => group.check(), /first/)
  let isDrained = false
  const drained = group.drain().finally(() => {
    isDrained = true
  })
  await Promise.resolve()
  assert.equal(isDrained, false)
  last.resolve()
  await assert.rejects(drained, /first/)
  group.check()
  await group.drain()
})

test('every item is worked on, and after a failure no further one is begun', async () => {
  const begun: number[] = []
  const work = async (item: number) => {
    begun.push(item)
    if (item === 2) throw new Error('two')
  }
  await forEachAtOnce([0, 1], 2, work)
  assert.deepEqual(begun, [0, 1])
  await assert.rejects(forEachAtOnce([2, 3, 4, 5], 1, work), /two/)
  assert.deepEqual(begun, [0, 1, 2])
})
