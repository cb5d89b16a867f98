// Reads templates of strangers in a thread of its own, with a limit of time and memory: whatever a text is made to do, the
// event loop goes on.
import { Worker } from 'node:worker_threads'
import { fail } from '../contract/errors.ts'
import { TEMPLATE_READING } from '../contract/fixed-limits.ts'
import type { TemplateMediaType } from '../contract/templates.ts'
import { hasCode } from '../kit/errno.ts'
import { moduleBeside } from '../kit/module-beside.ts'
import type { ReadOptions, ReadTemplate, TemplateFault } from './read.ts'

export interface ReaderOrder {
  text: string
  type: TemplateMediaType
  options: ReadOptions
}

export type ReaderAnswer = { read: ReadTemplate } | { faults: TemplateFault[] } | { error: string }

export interface TemplateReader {
  /** Throws `invalid_request` with every fault, and `rate_limited` where too many wait. */
  read(order: ReaderOrder): Promise<ReadTemplate>
}

const MIB = 1024 * 1024
/** Starting the thread takes longer than reading an egg, and people import several. */
const IDLE_MS = 30_000
const { seconds, memoryBytes, waiting: waitingMax } = TEMPLATE_READING

export function createTemplateReader(): TemplateReader {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let thread: Worker | undefined
  let idle: NodeJS.Timeout | undefined

  function end(): void {
    void thread?.terminate()
    thread = undefined
  }

  async function readInThread(order: ReaderOrder): Promise<ReaderAnswer> {
    clearTimeout(idle)
    thread ??= startThread()
    try {
      const answer = await ask(thread, order)
      idle = setTimeout(end, IDLE_MS).unref()
      return answer
    } catch (error) {
      // Whatever it is at now, nobody waits for it.
      end()
      if (error instanceof TooExpensive) return { faults: [{ path: '', message: error.message, line: 1 }] }
      throw error
    }
  }

  return {
    async read(order) {
      if (waiting >= waitingMax) throw fail('rate_limited', { headers: { 'retry-after': '5' } })
      waiting++
      const answered = last.then(() => readInThread(order))
      last = answered.catch(() => {})
      try {
        return take(await answered)
      } finally {
        waiting--
      }
    },
  }
}

class TooExpensive extends Error {}

function startThread(): Worker {
  const worker = new Worker(moduleBeside(import.meta.url, 'reader-worker'), {
    resourceLimits: { maxOldGenerationSizeMb: memoryBytes / MIB, stackSizeMb: 4 },
  })
  worker.unref()
  // One that nobody waits for says why it ended to nobody.
  worker.on('error', () => {})
  return worker
}

async function ask(worker: Worker, order: ReaderOrder): Promise<ReaderAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<ReaderAnswer>()
  const onError = (error: unknown) =>
    reject(
      hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY')
        ? new TooExpensive(`takes more than ${memoryBytes / MIB} MiB to read`)
        : error,
    )
  const onExit = () => reject(new Error('the thread that reads templates ended'))
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

function take(answer: ReaderAnswer): ReadTemplate {
  if ('read' in answer) return answer.read
  if ('error' in answer) throw new Error(answer.error)
  const errors = answer.faults.map(({ path, message, line }) => ({ path, message: `${message} (line ${line})` }))
  const names = errors.map(({ path, message }) => (path ? `${path} ${message}` : message))
  throw fail('invalid_request', { detail: `The template is not valid: ${names.slice(0, 5).join('; ')}.`, errors })
}
