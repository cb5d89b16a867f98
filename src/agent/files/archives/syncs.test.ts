// Who waits for the disk, and for how many.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginUrgent } from '../../../kit/waiting/urgent.ts'
import type { OpenFile } from '../sandbox/directory.ts'
import { createSyncs } from './syncs.ts'

const LARGE = 1_000_000
const TOGETHER = 32
const { signal } = new AbortController()
const nextTurn = () => new Promise(setImmediate)

/** Files whose syncs end when they are told to. */
function watchSyncs() {
  const waiting: (() => void)[] = []
  const seen = { order: [] as string[], running: 0, most: 0, closed: 0 }
  const fileOf = (share: string): OpenFile =>
    ({
      release: () => ({
        async use() {
          seen.order.push(share)
          seen.most = Math.max(seen.most, ++seen.running)
          await new Promise<void>((resolve) => waiting.push(resolve))
          seen.running--
        },
        [Symbol.dispose]: () => void seen.closed++,
      }),
    }) as unknown as OpenFile
  const finish = async (count: number) => {
    while (seen.closed < count) {
      waiting.shift()?.()
      await nextTurn()
    }
  }
  return { seen, fileOf, finish }
}

for (const size of [0, LARGE])
  test(`bulk syncs of all servers together take two threads, in turn, and a file is closed once it is on disk: ${size} bytes`, async () => {
    const { seen, fileOf, finish } = watchSyncs()
    await using first = createSyncs('srv_a', signal)
    await using second = createSyncs('srv_b', signal)
    for (let file = 0; file < 6; file++) await first.add(fileOf('srv_a'), size)
    for (let file = 0; file < 2; file++) await second.add(fileOf('srv_b'), size)
    const drained = Promise.all([first.drain(), second.drain()])
    await finish(8)
    await drained
    assert.equal(seen.most, 2)
    // One that came later is not behind all of another's.
    assert.ok(seen.order.indexOf('srv_b') < 4, seen.order.join(' '))
  })

test('small files are synced together, and the next is made when they are on disk', async () => {
  const { seen, fileOf, finish } = watchSyncs()
  await using syncs = createSyncs('srv_a', signal)
  for (let file = 1; file < TOGETHER; file++) await syncs.add(fileOf('srv_a'), 1)
  assert.equal(seen.order.length, 0)
  let mayGoOn = false
  const last = syncs.add(fileOf('srv_a'), 1).then(() => {
    mayGoOn = true
  })
  await finish(TOGETHER - 1)
  assert.equal(mayGoOn, false)
  await finish(TOGETHER)
  await last
})

test('files that were not synced are closed when the work ends early', async () => {
  const { seen, fileOf } = watchSyncs()
  {
    await using syncs = createSyncs('srv_a', signal)
    await syncs.add(fileOf('srv_a'), 1)
  }
  assert.deepEqual(seen, { order: [], running: 0, most: 0, closed: 1 })
})

test('a bulk sync begins once no change is under way that somebody waits for', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { seen, fileOf, finish } = watchSyncs()
  await using syncs = createSyncs('srv_a', signal)
  const urgent = beginUrgent()
  await syncs.add(fileOf('srv_a'), LARGE)
  await nextTurn()
  assert.equal(seen.order.length, 0)
  urgent[Symbol.dispose]()
  await finish(1)
  await syncs.drain()
})
