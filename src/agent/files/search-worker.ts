// Searches in a thread of its own, and gently: whatever they cost, requests are answered first.
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { SearchMatch } from '../../contract/agent-files.ts'
import { type ErrorCode, isFailure } from '../../contract/errors.ts'
import { openSandbox } from './sandbox.ts'
import { type SearchRequest, search } from './search.ts'

const NICE = 10

/** `cancel`: nobody waits for the answer any more. */
export type SearchOrder =
  | { id: number; folder: string; request: Omit<SearchRequest, 'signal'> }
  | { id: number; cancel: true }

export interface SearchAnswer {
  id: number
  result?: { matches: SearchMatch[]; isComplete: boolean }
  failure?: { code: ErrorCode; detail: string }
  error?: { message: string; code: string | undefined }
}

function serve(port: NonNullable<typeof parentPort>): void {
  // On Linux this is the calling thread alone.
  setPriority(0, NICE)
  const underWay = new Map<number, AbortController>()

  async function answer(id: number, folder: string, request: SearchRequest): Promise<SearchAnswer> {
    const abort = new AbortController()
    underWay.set(id, abort)
    try {
      return { id, result: await search(openSandbox(folder), { ...request, signal: abort.signal }) }
    } catch (error) {
      if (isFailure(error)) return { id, failure: { code: error.code, detail: error.detail } }
      const { message, code } = error as NodeJS.ErrnoException
      return { id, error: { message, code } }
    } finally {
      underWay.delete(id)
    }
  }

  port.on('message', (order: SearchOrder) => {
    if ('cancel' in order) underWay.get(order.id)?.abort()
    else void answer(order.id, order.folder, order.request).then((answered) => port.postMessage(answered))
  })
}

if (parentPort) serve(parentPort)
