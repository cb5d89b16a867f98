import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isFailure } from '../contract/errors.ts'
import { TRANSFERS } from '../contract/fixed-limits.ts'
import { createShares, createTransferShares } from './fair-shares.ts'

const STAYS = new AbortController().signal

function scene(options: Parameters<typeof createShares>[0]) {
  const shares = createShares(options)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const ask = (serverId: string, name: string, signal = STAYS) =>
    shares.run(serverId, signal, async () => {
      begun.push(name)
      const { promise, resolve } = Promise.withResolvers<void>()
      ends.set(name, resolve)
      await promise
      return name
    })
  return { begun, ask, end: (name: string) => ends.get(name)?.() }
}

test('one server has its share, and the others do not wait behind what it has queued', async () => {
  const { begun, ask, end } = scene({ atOnce: 3, atOncePerServer: 2, waitingPerServer: 10 })
  const noisy = ['n1', 'n2', 'n3', 'n4'].map((name) => ask('noisy', name))
  const quiet = ask('quiet', 'q1')
  await nextTurn()
  assert.deepEqual(begun, ['n1', 'n2', 'q1'])
  const second = ask('quiet', 'q2')
  end('n1')
  await noisy[0]
  await nextTurn()
  assert.deepEqual(begun.slice(3), ['n3'], 'whoever was served longest ago is next')
  end('n2')
  await noisy[1]
  await nextTurn()
  assert.deepEqual(begun.slice(4), ['q2'])
  for (const name of ['n3', 'q1', 'q2']) end(name)
  await quiet
  await second
  await nextTurn()
  end('n4')
  await Promise.all(noisy)
})

test('more than may wait are refused with rate_limited and Retry-After', async () => {
  const { ask, end } = scene({ atOnce: 1, atOncePerServer: 1, waitingPerServer: 1 })
  const first = ask('a', '1')
  const second = ask('a', '2')
  await assert.rejects(
    ask('a', '3'),
    (error) => isFailure(error, 'rate_limited') && error.headers?.['retry-after'] !== undefined,
  )
  end('1')
  await first
  await nextTurn()
  end('2')
  await second
})

test('one that leaves while it waits is never begun, and gives its place away', async () => {
  const { begun, ask, end } = scene({ atOnce: 1, atOncePerServer: 1, waitingPerServer: 1 })
  const first = ask('a', '1')
  const leaving = new AbortController()
  const left = assert.rejects(ask('a', '2', leaving.signal), /gone/)
  leaving.abort(new Error('gone'))
  await left
  const third = ask('a', '3')
  end('1')
  await first
  await nextTurn()
  end('3')
  assert.equal(await third, '3')
  assert.deepEqual(begun, ['1', '3'])
})

test('work that fails gives its place back', async () => {
  const shares = createShares({ atOnce: 1, atOncePerServer: 1, waitingPerServer: 1 })
  const failing = shares.run('a', STAYS, async () => {
    throw new Error('no')
  })
  await assert.rejects(failing, /no/)
  assert.equal(await shares.run('a', STAYS, async () => 1), 1)
})

suite('transfers', { timeout: 120_000 }, () => {
  const forEver = new Promise<never>(() => {})

  test('servers that hold all they can, one after the other, leave 1 / (n + 1) to the next', async () => {
    const atOnce = 244
    const shares = createTransferShares(atOnce)
    let running = 0
    const hold = (serverId: string) =>
      shares
        .run(serverId, STAYS, () => {
          running++
          return forEver
        })
        .catch(() => {})
    for (let servers = 1; servers <= 8; servers++) {
      for (let times = 0; times < atOnce; times++) void hold(`srv_${servers}`)
      await nextTurn()
      assert.ok(atOnce - running >= atOnce / (servers + 1), `${servers} servers hold ${running} of ${atOnce}`)
    }
    assert.equal(await shares.run('srv_quiet', STAYS, async () => 'served'), 'served')
  })

  test('with two in all, each of two servers has one', async () => {
    const shares = createTransferShares(2)
    const abort = new AbortController()
    void shares.run('srv_a', STAYS, () => forEver)
    const second = shares.run('srv_a', abort.signal, () => forEver)
    assert.equal(await shares.run('srv_b', STAYS, async () => 'served'), 'served')
    abort.abort(new Error('gone'))
    await assert.rejects(second, /gone/)
  })

  test('whoever has waited for 10 seconds is refused with rate_limited and Retry-After', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const shares = createTransferShares(1)
    void shares.run('srv_a', STAYS, () => forEver)
    const waiting = shares.run('srv_b', STAYS, async () => assert.fail('it began'))
    const refused = assert.rejects(
      waiting,
      (error) => isFailure(error, 'rate_limited') && error.headers?.['retry-after'] !== undefined,
    )
    t.mock.timers.tick(TRANSFERS.waitMs)
    await refused
  })

  test('one that has begun is not refused for what it has waited', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const shares = createTransferShares(1)
    const first = Promise.withResolvers<void>()
    const running = shares.run('srv_a', STAYS, () => first.promise)
    const second = Promise.withResolvers<string>()
    const waiting = shares.run('srv_b', STAYS, () => second.promise)
    first.resolve()
    await running
    t.mock.timers.tick(2 * TRANSFERS.waitMs)
    second.resolve('served')
    assert.equal(await waiting, 'served')
  })
})
