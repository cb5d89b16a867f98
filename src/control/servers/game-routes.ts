import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ConsoleLine, type ConsoleQuery, readConsole, sendCommand } from '../../contract/games/console.ts'
import { installServer } from '../../contract/games/install-operations.ts'
import { powerServer } from '../../contract/games/power-operations.ts'
import { whileClientStays } from '../../http/client-left.ts'
import type { Actor } from '../http/actor.ts'
import { negotiate } from '../http/negotiate.ts'
import { type Api, serve } from '../http/route.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import { sendEvents } from '../http/streams/sse.ts'
import type { Games } from './games.ts'
import type { Installs } from './install.ts'

interface Reading {
  actor: Actor
  params: { serverId: string }
  query: ConsoleQuery
  request: FastifyRequest
  reply: FastifyReply
}

const NEVER = new AbortController().signal

export function gameRoutes(
  api: Api,
  { games, installs, streams }: { games: Games; installs: Installs; streams: Streams },
): void {
  async function follow({ actor, params: { serverId }, query, request, reply }: Reading): Promise<never> {
    if (request.method === 'HEAD') return reply.type('text/event-stream').send() as never
    const lastId = request.headers['last-event-id']
    const from = { lastId: lastId === undefined ? null : String(lastId), q: query.q ?? null }
    await streams.hold(actor, serverId, (ended) =>
      sendEvents(reply, (signal) => eventsOf(games.followConsole(actor, serverId, from, signal)), ended),
    )
    return undefined as never
  }

  serve(api, powerServer, ({ actor, params, body }) => games.power(actor, params.serverId, body.action), {
    status: ({ isChange }) => (isChange ? 202 : 200),
    body: ({ server }) => server,
  })
  serve(api, installServer, ({ actor, params, body }) => installs.start(actor, params.serverId, body))
  serve(api, readConsole, (call) => {
    const type = negotiate(call.request.headers.accept, ['application/json', 'text/event-stream'])
    if (type === 'text/event-stream') return follow(call)
    const { actor, params, query, reply } = call
    return whileClientStays(reply, NEVER, (signal) => games.readConsole(actor, params.serverId, query, signal))
  })
  serve(api, sendCommand, ({ actor, params, body }) => games.sendCommand(actor, params.serverId, body.command))
}

async function* eventsOf(batches: AsyncIterable<ConsoleLine[]>): AsyncGenerator<string> {
  for await (const batch of batches)
    yield batch.map((line) => `id: ${line.line}\nevent: line\ndata: ${JSON.stringify(line)}\n\n`).join('')
}
