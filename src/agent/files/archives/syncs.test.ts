// Who waits for the disk, and for how many.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenFile } from '../sandbox/directory.ts'
import { createSyncs } from './syncs.ts'

test('bulk syncs of all servers together take two threads, in turn, and a file is closed once it is on disk', async () => {
  const { signal } = new AbortController()
  const order: string[] = []
  const waiting: (() => void)[] = []
  let [running, most, closed] = [0, 0, 0]
  const fileOf = (share: string): OpenFile =>
    ({
      release: () => ({
        async use() {
          order.push(share)
          most = Math.max(most, ++running)
          await new Promise<void>((resolve) => waiting.push(resolve))
          running--
        },
        [Symbol.dispose]: () => void closed++,
      }),
    }) as unknown as OpenFile
  await using first = createSyncs('srv_a', signal)
  await using second = createSyncs('srv_b', signal)
  for (let file = 0; file < 6; file++) await first.add(fileOf('srv_a'))
  for (let file = 0; file < 2; file++) await second.add(fileOf('srv_b'))
  const drained = Promise.all([first.drain(), second.drain()])
  while (closed < 8) {
    waiting.shift()?.()
    await new Promise(setImmediate)
  }
  await drained
  assert.equal(most, 2)
  // One that came later is not behind all of another's.
  assert.ok(order.indexOf('srv_b') < 4, order.join(' '))
})
