// The thread that reads whatever grows with a tenant's data. It is started on first use.
import { Worker } from 'node:worker_threads'
import { fail } from '../../../contract/errors.ts'
import { moduleBeside } from '../../../kit/module-beside.ts'
import { createTurns, type Turns } from '../../../kit/waiting/turns.ts'
import type { ReaderAnswer, ReaderOrder, Reading, ReadingKind, ReadingResults } from './reader-worker.ts'

/** What the thread may hold: a search has a chunk of one file and its matches, a list one page. */
const OLD_MB = 128

export interface ReaderThread {
  /** Ends with its signal. */
  read<K extends ReadingKind>(reading: Reading & { kind: K }, signal: AbortSignal): Promise<ReadingResults[K]>
  close(): Promise<void>
}

interface Asked {
  resolve(result: unknown): void
  reject(error: unknown): void
}

export function createReaderThread(): ReaderThread {
  const asked = new Map<number, Asked>()
  let thread: Worker | undefined
  let lastId = 0

  function start(): Worker {
    const worker = new Worker(moduleBeside(import.meta.url, 'reader-worker'), {
      resourceLimits: { maxOldGenerationSizeMb: OLD_MB },
    })
    let reason: unknown = new Error('the reader thread ended')
    worker.unref()
    worker.on('message', ({ id, ...answer }: ReaderAnswer) => {
      settle(asked.get(id), answer)
      asked.delete(id)
    })
    worker.on('error', (error) => {
      reason = error
    })
    worker.on('exit', () => {
      if (thread === worker) thread = undefined
      for (const { reject } of asked.values()) reject(reason)
      asked.clear()
    })
    return worker
  }

  const send = (order: ReaderOrder) => {
    thread ??= start()
    thread.postMessage(order)
  }

  return {
    async read<K extends ReadingKind>(reading: Reading & { kind: K }, signal: AbortSignal) {
      signal.throwIfAborted()
      const id = ++lastId
      const cancel = () => send({ id, cancel: true })
      const answered = new Promise<unknown>((resolve, reject) => asked.set(id, { resolve, reject }))
      send({ id, reading })
      signal.addEventListener('abort', cancel, { once: true })
      try {
        return (await answered) as ReadingResults[K]
      } catch (error) {
        signal.throwIfAborted()
        throw error
      } finally {
        signal.removeEventListener('abort', cancel)
      }
    },
    async close() {
      await thread?.terminate()
    },
  }
}

function settle(waiting: Asked | undefined, { result, failure, error }: Omit<ReaderAnswer, 'id'>): void {
  if (failure) waiting?.reject(fail(failure.code, failure.detail))
  else if (error) waiting?.reject(Object.assign(new Error(error.message), { code: error.code }))
  else waiting?.resolve(result)
}

class MoreThanATurn extends Error {}

/** Does here what a part of one turn suffices for, and elsewhere what it does not. */
export async function inOneTurn<T>(share: string, here: (turn: Turns) => Promise<T>, elsewhere: () => Promise<T>) {
  const { due } = createTurns(share)
  const take = async () => {
    throw new MoreThanATurn()
  }
  try {
    return await here({ due, take })
  } catch (error) {
    if (error instanceof MoreThanATurn) return await elsewhere()
    throw error
  }
}
