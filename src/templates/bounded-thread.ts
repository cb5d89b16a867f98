// A thread for what strangers wrote: one order at a time, with a limit of time and memory, so that whatever a text is made to
// do, the event loop goes on. The time is that of the processor: on a busy machine no text takes more of it.
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
/** One that has used up less than its time is waited for this many times as long, and then given up whatever it waits for. */
const PATIENCE = 6

type Limits = { [Name in keyof typeof TEMPLATE_READING]: number }

/** `module` answers each message with one. */
export function createBoundedThread<Order, Answer>(
  module: URL,
  limits: Limits = TEMPLATE_READING,
): BoundedThread<Order, Answer> {
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
    thread ??= start(module, limits)
    try {
      const answer = await exchange<Order, Answer>(thread, order, limits)
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
      if (waiting >= limits.waiting) throw fail('rate_limited', { headers: { 'retry-after': '5' } })
      waiting++
      try {
        return await mutex(() => askNow(order))
      } finally {
        waiting--
      }
    },
  }
}

function start(module: URL, { memoryBytes }: Limits): Worker {
  const worker = new Worker(module, {
    resourceLimits: { maxOldGenerationSizeMb: memoryBytes / MIB, stackSizeMb: 4 },
  })
  worker.unref()
  // One that nobody waits for says why it ended to nobody.
  worker.on('error', () => {})
  return worker
}

/** Seconds of the processor that a thread has used; none before it runs. */
const usedBy = (worker: Worker) =>
  worker.cpuUsage().then(
    ({ user, system }) => (user + system) / 1e6,
    () => 0,
  )

async function exchange<Order, Answer>(worker: Worker, order: Order, limits: Limits): Promise<Answer> {
  const { seconds, memoryBytes } = limits
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const onError = (error: unknown) =>
    reject(
      hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY')
        ? new TooExpensive(`takes more than ${memoryBytes / MIB} MiB to read`)
        : error,
    )
  const onExit = () => reject(new Error('the thread for templates ended'))
  const late = () => new TooExpensive(`takes more than ${seconds} s to read`)
  const before = usedBy(worker)
  const begun = performance.now()
  let timer: NodeJS.Timeout | undefined
  let isDone = false
  const look = async () => {
    const left = seconds - ((await usedBy(worker)) - (await before))
    const isOver = performance.now() - begun >= PATIENCE * seconds * 1000
    if (left <= 0 || isOver) reject(late())
    else if (!isDone) lookAfter(Math.max(left, seconds / 10))
  }
  const lookAfter = (wait: number) => {
    timer = setTimeout(look, wait * 1000)
  }
  worker.once('message', resolve).once('error', onError).once('exit', onExit)
  lookAfter(seconds)
  worker.ref()
  worker.postMessage(order)
  try {
    return await promise
  } finally {
    isDone = true
    worker.unref()
    clearTimeout(timer)
    worker.off('message', resolve).off('error', onError).off('exit', onExit)
  }
}
