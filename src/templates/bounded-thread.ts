// A thread for what strangers wrote: one order at a time, with a limit of time and memory, so that whatever a text is made to
// do, the event loop goes on.
import { Worker } from 'node:worker_threads'
import { fail } from '../contract/errors.ts'
import { TEMPLATE_READING } from '../contract/fixed-limits.ts'
import { hasCode } from '../kit/files/errno.ts'
import { createMutex } from '../kit/waiting/mutex.ts'

export interface BoundedThread<Order, Answer> {
  /** Throws TooExpensive, and `rate_limited` where too many wait. */
  ask(order: Order): Promise<Answer>
}

export class TooExpensive extends Error {}

const MIB = 1024 * 1024
/** Starting the thread takes longer than most orders, and several often follow each other. */
const IDLE_MS = 30_000
const { seconds, memoryBytes, waiting: waitingMax } = TEMPLATE_READING

/** `module` answers each message with one. */
export function createBoundedThread<Order, Answer>(module: URL): BoundedThread<Order, Answer> {
  const mutex = createMutex()
  let waiting = 0
  let thread: Worker | undefined
  let idle: NodeJS.Timeout | undefined

  function end(): void {
    void thread?.terminate()
    thread = undefined
  }

  async function askNow(order: Order): Promise<Answer> {
    clearTimeout(idle)
    thread ??= start(module)
    try {
      const answer = await exchange<Order, Answer>(thread, order)
      idle = setTimeout(end, IDLE_MS).unref()
      return answer
    } catch (error) {
      // Whatever it is at now, nobody waits for it.
      end()
      throw error
    }
  }

  return {
    async ask(order) {
      if (waiting >= waitingMax) throw fail('rate_limited', { headers: { 'retry-after': '5' } })
      waiting++
      try {
        return await mutex(() => askNow(order))
      } finally {
        waiting--
      }
    },
  }
}

function start(module: URL): Worker {
  const worker = new Worker(module, {
    resourceLimits: { maxOldGenerationSizeMb: memoryBytes / MIB, stackSizeMb: 4 },
  })
  worker.unref()
  // One that nobody waits for says why it ended to nobody.
  worker.on('error', () => {})
  return worker
}

async function exchange<Order, Answer>(worker: Worker, order: Order): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const onError = (error: unknown) =>
    reject(
      hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY')
        ? new TooExpensive(`takes more than ${memoryBytes / MIB} MiB to read`)
        : error,
    )
  const onExit = () => reject(new Error('the thread for templates ended'))
  const onLate = () => reject(new TooExpensive(`takes more than ${seconds} s to read`))
  worker.once('message', resolve).once('error', onError).once('exit', onExit)
  const timer = setTimeout(onLate, seconds * 1000)
  worker.ref()
  worker.postMessage(order)
  try {
    return await promise
  } finally {
    worker.unref()
    clearTimeout(timer)
    worker.off('message', resolve).off('error', onError).off('exit', onExit)
  }
}
