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
const { seconds, memoryBytes, waiting: waitingMax } = TEMPLATE_READING

export function createTemplateReader(): TemplateReader {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
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

function take(answer: ReaderAnswer): ReadTemplate {
  if ('read' in answer) return answer.read
  if ('error' in answer) throw new Error(answer.error)
  const errors = answer.faults.map(({ path, message, line }) => ({ path, message: `${message} (line ${line})` }))
  const names = errors.map(({ path, message }) => (path ? `${path} ${message}` : message))
  throw fail('invalid_request', { detail: `The template is not valid: ${names.slice(0, 5).join('; ')}.`, errors })
}

const tooExpensive = (message: string): ReaderAnswer => ({ faults: [{ path: '', message, line: 1 }] })

async function readInThread(order: ReaderOrder): Promise<ReaderAnswer> {
  const worker = new Worker(moduleBeside(import.meta.url, 'reader-worker'), {
    workerData: order,
    resourceLimits: { maxOldGenerationSizeMb: memoryBytes / MIB, stackSizeMb: 4 },
  })
  const { promise, resolve, reject } = Promise.withResolvers<ReaderAnswer>()
  worker.once('message', resolve)
  worker.once('error', (error) =>
    hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY')
      ? resolve(tooExpensive(`takes more than ${memoryBytes / MIB} MiB to read`))
      : reject(error),
  )
  worker.once('exit', () => reject(new Error('the thread that reads templates ended')))
  const timer = setTimeout(() => resolve(tooExpensive(`takes more than ${seconds} s to read`)), seconds * 1000)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    worker.removeAllListeners()
    worker.on('error', () => {})
    void worker.terminate()
  }
}
