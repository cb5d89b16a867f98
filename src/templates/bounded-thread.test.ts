import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBoundedThread, TooExpensive } from './bounded-thread.ts'

const LIMITS = { seconds: 0.5, memoryBytes: 64 * 1024 * 1024, waiting: 2 }
const threadOf = (body: string) =>
  createBoundedThread<number, number>(
    new URL(
      `data:text/javascript,${encodeURIComponent(`
        import { parentPort } from 'node:worker_threads'
        parentPort.on('message', async (order) => { ${body} })
      `)}`,
    ),
    LIMITS,
  )
const never = 'for (;;);'
const busyFor = 'const end = performance.now() + order; while (performance.now() < end);'

test('what keeps a processor busy for too long is given up, and the next order is answered', async () => {
  const thread = threadOf(`if (order < 0) ${never} parentPort.postMessage(order)`)
  await assert.rejects(thread.ask(-1), new TooExpensive('takes more than 0.5 s to read'))
  assert.equal(await thread.ask(7), 7)
})

test('what waits for a processor for longer than that is not taken for expensive', async () => {
  const thread = threadOf('setTimeout(() => parentPort.postMessage(order), 1200)')
  assert.equal(await thread.ask(7), 7)
})

test('each order has its own time', async () => {
  const thread = threadOf(`${busyFor} parentPort.postMessage(order)`)
  for (let count = 0; count < 4; count++) assert.equal(await thread.ask(200), 200)
})

test('one that neither works nor answers is given up in the end', async () => {
  await assert.rejects(threadOf('').ask(1), TooExpensive)
})
