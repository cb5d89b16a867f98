import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TransportError } from '../../../../src/sdk/index.ts'
import { type Connection, followInSight, type StreamState } from './live-stream.ts'

function createSight(isHidden: boolean) {
  const page = new EventTarget()
  return {
    isHidden,
    onChange: (listener: () => void, signal: AbortSignal) => page.addEventListener('change', listener, { signal }),
    set(hidden: boolean) {
      this.isHidden = hidden
      page.dispatchEvent(new Event('change'))
    },
  }
}

/** Each call of `follow`, which ends as the client of the service does: quietly with its signal. */
function createFollow() {
  const calls: Connection[] = []
  let called = Promise.withResolvers<void>()
  return {
    calls,
    async reach(count: number) {
      while (calls.length < count) await called.promise
    },
    follow(connection: Connection): Promise<void> {
      calls.push(connection)
      called.resolve()
      called = Promise.withResolvers()
      return new Promise((resolve) => connection.signal.addEventListener('abort', () => resolve()))
    },
  }
}

test('a stream is not begun while the page is hidden, ends when it is hidden, and goes on when it is shown', async () => {
  const sight = createSight(true)
  const closed = new AbortController()
  const { calls, reach, follow } = createFollow()
  const states: StreamState[] = []
  const running = followInSight(follow, (state) => states.push(state), closed.signal, sight)
  await Promise.resolve()
  assert.equal(calls.length, 0)
  sight.set(false)
  await reach(1)
  calls[0]?.onConnect()
  sight.set(true)
  assert.ok(calls[0]?.signal.aborted)
  calls[0]?.onReconnect()
  sight.set(false)
  await reach(2)
  assert.equal(calls[1]?.signal.aborted, false)
  closed.abort()
  await running
  assert.ok(calls[1]?.signal.aborted)
  assert.deepEqual(states, ['live'])
})

test('a first connection that fails is tried again while the service is away, and not where it was refused', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const refusal = new Error('no')
  const failures = [new TransportError('network', 'away'), refusal]
  const states: StreamState[] = []
  const lost = Promise.withResolvers<void>()
  const running = followInSight(
    () => Promise.reject(failures.shift()),
    (state) => {
      states.push(state)
      lost.resolve()
    },
    new AbortController().signal,
    createSight(false),
  )
  await lost.promise
  context.mock.timers.tick(2000)
  await running
  assert.deepEqual(states, ['lost', { error: refusal }])
})
