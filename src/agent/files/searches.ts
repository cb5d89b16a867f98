// The searches under way on this machine: in one thread beside the main one, some at once, and each server has its share.
import { Worker } from 'node:worker_threads'
import type { SearchMatch } from '../../contract/agent-files.ts'
import { fail } from '../../contract/errors.ts'
import { SEARCHES } from '../../contract/limits.ts'
import { createShares } from '../shares.ts'
import type { SearchRequest } from './search.ts'
import type { SearchAnswer, SearchOrder } from './search-worker.ts'
import type { ServerFiles } from './server-files.ts'

/** What the thread may hold; a search holds a chunk of one file and its matches. */
const OLD_MB = 128

export interface SearchResult {
  matches: SearchMatch[]
  isComplete: boolean
}

export interface Searches {
  /** Ends with its signal, also while it waits. */
  run(server: ServerFiles, request: Omit<SearchRequest, 'signal'>, signal: AbortSignal): Promise<SearchResult>
  close(): Promise<void>
}

interface Asked {
  resolve(result: SearchResult): void
  reject(error: unknown): void
}

export function createSearches(): Searches {
  const shares = createShares(SEARCHES)
  const asked = new Map<number, Asked>()
  let thread: Worker | undefined
  let lastId = 0

  function start(): Worker {
    const worker = new Worker(new URL('./search-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: OLD_MB },
    })
    let reason: unknown = new Error('the search thread ended')
    worker.unref()
    worker.on('message', ({ id, ...answer }: SearchAnswer) => {
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

  const send = (order: SearchOrder) => {
    thread ??= start()
    thread.postMessage(order)
  }

  async function ask(folder: string, request: Omit<SearchRequest, 'signal'>, signal: AbortSignal) {
    const id = ++lastId
    const cancel = () => send({ id, cancel: true })
    const answered = new Promise<SearchResult>((resolve, reject) => asked.set(id, { resolve, reject }))
    send({ id, folder, request })
    signal.addEventListener('abort', cancel, { once: true })
    try {
      return await answered
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  return {
    run: (server, request, signal) =>
      shares.run(server.serverId, signal, () => ask(server.folders.files, request, signal)),
    async close() {
      await thread?.terminate()
    },
  }
}

function settle(waiting: Asked | undefined, { result, failure, error }: Omit<SearchAnswer, 'id'>): void {
  if (result) waiting?.resolve(result)
  else if (failure) waiting?.reject(fail(failure.code, failure.detail))
  else waiting?.reject(Object.assign(new Error(error?.message), { code: error?.code }))
}
