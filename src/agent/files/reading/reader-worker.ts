// Reads whatever grows with a tenant's data in a thread of its own, and gently: whatever it costs, requests are answered
// first.
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { ListRequest } from '../../../contract/agent/agent-files.ts'
import { type ErrorCode, isFailure } from '../../../contract/errors.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { openSandbox, shareOf } from '../sandbox/sandbox.ts'
import { listTrash, type TrashPageRequest } from '../trash/trash-page.ts'
import { list } from './list.ts'
import { type SearchRequest, search } from './search.ts'

const NICE = 10

/** `folder` is trusted: it comes from the layout. */
interface Readings {
  search: { folder: string; request: Omit<SearchRequest, 'signal'> }
  list: { folder: string; request: Omit<ListRequest, 'serverId'> }
  trash: TrashPageRequest
}

export interface ReadingResults {
  search: Awaited<ReturnType<typeof search>>
  list: Awaited<ReturnType<typeof list>>
  trash: Awaited<ReturnType<typeof listTrash>>
}

export type ReadingKind = keyof Readings
export type Reading = { [Kind in ReadingKind]: { kind: Kind } & Readings[Kind] }[ReadingKind]
/** `cancel`: nobody waits for the answer any more. */
export type ReaderOrder = { id: number; reading: Reading } | { id: number; cancel: true }

export interface ReaderAnswer {
  id: number
  result?: unknown
  failure?: { code: ErrorCode; detail: string }
  error?: { message: string; code: string | undefined }
}

function read(reading: Reading, signal: AbortSignal): Promise<unknown> {
  if (reading.kind === 'trash') return listTrash(reading, createTurns(shareOf(reading.folder), signal))
  const files = openSandbox(reading.folder)
  if (reading.kind === 'list') return list(files, reading.request, createTurns(files.share, signal))
  return search(files, { ...reading.request, signal })
}

function serve(port: NonNullable<typeof parentPort>): void {
  // On Linux this is the calling thread alone.
  setPriority(0, NICE)
  const underWay = new Map<number, AbortController>()

  async function answer(id: number, reading: Reading): Promise<ReaderAnswer> {
    const abort = new AbortController()
    underWay.set(id, abort)
    try {
      return { id, result: await read(reading, abort.signal) }
    } catch (error) {
      if (isFailure(error)) return { id, failure: { code: error.code, detail: error.detail } }
      const { message, code } = error as NodeJS.ErrnoException
      return { id, error: { message, code } }
    } finally {
      underWay.delete(id)
    }
  }

  port.on('message', (order: ReaderOrder) => {
    if ('cancel' in order) underWay.get(order.id)?.abort()
    else void answer(order.id, order.reading).then((answered) => port.postMessage(answered))
  })
}

if (parentPort) serve(parentPort)
