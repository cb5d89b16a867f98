// Something that changes until it has ended, such as a backup or a job: its state as a stream of events.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Watch } from '../../../kit/waiting/watchers.ts'
import type { Actor } from '../actor.ts'
import { negotiate } from '../negotiate.ts'
import type { Streams } from './open-streams.ts'
import { sendEvents } from './sse.ts'

/** Between two looks without a change, and two signs of life. */
export const HEARTBEAT_MS = 15_000

/** The row each time something about it changes, until it has ended or is gone; null is a sign of life. */
export async function* followRow<Row extends { status: string }>(
  first: Row,
  {
    changed,
    read,
    signal,
  }: {
    /** Watching since before the first was read. */
    changed: Watch
    read(): Promise<Row | undefined>
    signal: AbortSignal
  },
): AsyncGenerator<Row | null> {
  let shown = first
  yield shown
  let saidAt = Date.now()
  while (isUnderWay(shown) && !signal.aborted) {
    await changed.wait(HEARTBEAT_MS, signal)
    const row = signal.aborted ? undefined : await read()
    if (!row) return
    const isNews = JSON.stringify(row) !== JSON.stringify(shown)
    shown = row
    if (!isNews && Date.now() - saidAt < HEARTBEAT_MS) continue
    saidAt = Date.now()
    yield isNews ? row : null
  }
}

const isUnderWay = ({ status }: { status: string }) => status === 'queued' || status === 'running'

interface StateCall {
  actor: Actor
  params: { serverId: string }
  request: FastifyRequest
  reply: FastifyReply
}

/** The state as it is, or, for who accepts events rather, one of that type for each state: then it answers by itself. */
export async function readOrFollow<T extends object>(
  streams: Streams,
  { actor, params, request, reply }: StateCall,
  type: string,
  states: { read(): Promise<T>; follow(signal: AbortSignal): AsyncIterable<T | null> },
): Promise<T> {
  const accepted = negotiate(request.headers.accept, ['application/json', 'text/event-stream'])
  if (accepted === 'application/json') return await states.read()
  if (request.method === 'HEAD') {
    await states.read()
    return reply.type(accepted).send() as never
  }
  await streams.hold(actor, params.serverId, (ended) =>
    sendEvents(reply, (signal) => eventsOf(type, states.follow(signal)), ended),
  )
  return undefined as never
}

async function* eventsOf(type: string, states: AsyncIterable<object | null>): AsyncGenerator<string> {
  for await (const state of states) yield state ? `event: ${type}\ndata: ${JSON.stringify(state)}\n\n` : ''
}
