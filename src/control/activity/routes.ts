import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type ActivityEntry,
  type ActivityQuery,
  listActivity,
  listAllActivity,
  verifyActivity,
  verifyAllActivity,
} from '../../contract/activity.ts'
import type { Page } from '../../contract/schema.ts'
import { whileClientStays } from '../../http/client-left.ts'
import type { Db } from '../db/tables.ts'
import { type Actor, noSuchServer, requireAllServers } from '../http/actor.ts'
import { negotiate } from '../http/negotiate.ts'
import { type Api, serve } from '../http/route.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import { orDropped, sendEvents } from '../http/streams/sse.ts'
import { toCsv, toNdjson, toServerSentEvent } from './export-formats.ts'
import type { Activity } from './service.ts'

interface Reading {
  actor: Actor
  query: ActivityQuery
  request: FastifyRequest
  reply: FastifyReply
}

const NEVER = new AbortController().signal
const EXPORTS = ['application/json', 'application/x-ndjson', 'text/csv'] as const

export function activityRoutes(api: Api, deps: { db: Db; activity: Activity; streams: Streams }): void {
  const { db, activity, streams } = deps

  async function requireServer(serverId: string): Promise<void> {
    const found = await db.selectFrom('servers').select('id').where('id', '=', serverId).executeTakeFirst()
    if (!found) throw noSuchServer()
  }

  async function follow({ actor, query, request, reply }: Reading, serverId: string): Promise<never> {
    if (request.method === 'HEAD') return reply.type('text/event-stream').send() as never
    const lastId = request.headers['last-event-id']
    // Not tied to the server: it ends by itself once it has told of the deletion.
    await streams.hold(actor, null, (ended) =>
      sendEvents(
        reply,
        (signal) => eventsOf(activity.follow(serverId, lastId ? String(lastId) : null, query, signal)),
        ended,
      ),
    )
    return undefined as never
  }

  async function read(reading: Reading, serverId: string | null, type: (typeof EXPORTS)[number]) {
    const { actor, query, reply } = reading
    if (type === 'application/json')
      return whileClientStays(reply, NEVER, (staying) => activity.list(actor, serverId, query, staying))
    const left = new AbortController()
    reply.raw.once('close', () => left.abort())
    if (reply.raw.destroyed) left.abort()
    const entries = streams.holdEach(actor, serverId, (ended) =>
      activity.stream(serverId, query, AbortSignal.any([ended, left.signal])),
    )
    reply.header('content-type', `${type}; charset=utf-8`)
    if (type === 'text/csv') reply.header('content-disposition', 'attachment; filename="activity.csv"')
    const text = type === 'text/csv' ? toCsv(entries) : toNdjson(entries)
    return reply.send(Readable.from(orDropped(reply, text), { highWaterMark: 1 })) as unknown as Page<ActivityEntry>
  }

  /** May take minutes: it ends with its token, its server and its client. */
  const verify = ({ actor, reply }: Pick<Reading, 'actor' | 'reply'>, serverId: string | null) =>
    streams.hold(actor, serverId, (ended) =>
      whileClientStays(reply, ended, (signal) => activity.verify(actor, serverId, signal)),
    )

  serve(api, listActivity, async (call) => {
    const { serverId } = call.params
    await requireServer(serverId)
    const type = negotiate(call.request.headers.accept, [...EXPORTS, 'text/event-stream'])
    return type === 'text/event-stream' ? follow(call, serverId) : read(call, serverId, type)
  })

  serve(api, listAllActivity, async (call) => {
    requireAllServers(call.actor)
    return read(call, null, negotiate(call.request.headers.accept, EXPORTS))
  })

  serve(api, verifyActivity, async (call) => {
    await requireServer(call.params.serverId)
    return verify(call, call.params.serverId)
  })

  serve(api, verifyAllActivity, (call) => verify(call, null))
}

async function* eventsOf(batches: AsyncIterable<ActivityEntry[]>): AsyncGenerator<string> {
  for await (const batch of batches) yield batch.map(toServerSentEvent).join('')
}
