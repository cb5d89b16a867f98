// A server's activity as it happens, across as many connections as it takes. Nothing is missed and nothing comes twice:
// the place to go on from is known before the first connection, and moves with each entry that was read whole.
import { type ActivityEntry, type ActivityQuery, listActivity } from '../../contract/activity.ts'
import { backOffMs, sleep } from '../backoff.ts'
import { ApiError } from '../errors.ts'
import { isPassingRefusal } from '../retry.ts'
import type { Transport } from '../transport.ts'
import { openEvents } from './live-events.ts'
import type { ServerEvent } from './server-sent-events.ts'

export interface FollowOptions {
  query?: Omit<ActivityQuery, 'limit' | 'cursor'>
  /** Ends the iteration quietly. */
  signal?: AbortSignal
  /** The id of the last entry that was seen; without it, only what is written from now on. */
  lastEventId?: string
  /** Told when the connection is lost, before it is made anew. */
  onReconnect?: (error: Error | null) => void
  /** A connection that is silent for longer is taken for dead. */
  silenceMs?: number
}

const RECONNECT_MS = 1000
/** Sorts before every entry, so that following begins with the first one there will be. */
const BEFORE_ALL = 'act_0'

export async function* followActivity(
  transport: Transport,
  serverId: string,
  options: FollowOptions,
): AsyncGenerator<ActivityEntry, void, undefined> {
  const { query = {}, signal, onReconnect, silenceMs } = options
  let lastId = options.lastEventId ?? ''
  let retryMs = RECONNECT_MS
  let failures = 0
  let begun = false
  while (!signal?.aborted) {
    let lost: Error | null = null
    try {
      lastId ||= await newestId(transport, serverId, signal)
      const connection = await connect(transport, serverId, { query, signal, lastId, silenceMs, patient: !begun })
      begun = true
      for await (const event of connection) {
        failures = 0
        retryMs = event.retryMs ?? retryMs
        lastId = event.id || lastId
        yield JSON.parse(event.data) as ActivityEntry
      }
    } catch (error) {
      if (signal?.aborted) return
      if (!begun || !isPassing(error)) throw error
      lost = error
    }
    if (signal?.aborted) return
    onReconnect?.(lost)
    failures++
    const asked = lost instanceof ApiError ? (lost.retryAfterMs ?? 0) : 0
    await sleep(asked + backOffMs(failures, retryMs), signal).catch(() => {})
  }
}

/** Without it, what is written while the very first connection breaks would be lost. */
async function newestId(transport: Transport, serverId: string, signal: AbortSignal | undefined): Promise<string> {
  const query = { limit: 1 }
  const page = await transport.call(listActivity, { params: { serverId }, query, ...(signal ? { signal } : {}) })
  return page.data[0]?.id ?? BEFORE_ALL
}

interface Wanted {
  query: ActivityQuery
  signal: AbortSignal | undefined
  silenceMs: number | undefined
  lastId: string
  /** The first connection is tried as any request is; later ones are made anew by the caller. */
  patient: boolean
}

function connect(transport: Transport, serverId: string, wanted: Wanted): Promise<AsyncIterable<ServerEvent>> {
  const { query, lastId, patient } = wanted
  const open = (signal: AbortSignal) =>
    transport.open(
      listActivity,
      { params: { serverId }, query, headers: { 'last-event-id': lastId }, signal },
      { accept: 'text/event-stream', ...(patient ? {} : { retries: 0 }) },
    )
  return openEvents(open, wanted.signal, wanted.silenceMs)
}

/** Whether it may be over by the next attempt. A token that was revoked or a server that is gone stays so. */
function isPassing(error: unknown): error is Error {
  if (error instanceof ApiError) return isPassingRefusal(error)
  return error instanceof Error && !(error instanceof SyntaxError)
}
