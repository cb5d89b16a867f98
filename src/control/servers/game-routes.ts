import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ConsoleLine, readConsole, sendCommand } from '../../contract/games/console.ts'
import { readPlayers } from '../../contract/games/players.ts'
import { powerServer } from '../../contract/games/power-operations.ts'
import { readStats, type StatsPoint } from '../../contract/games/stats.ts'
import { whileClientStays } from '../../http/client-left.ts'
import type { Actor } from '../http/actor.ts'
import { negotiate } from '../http/negotiate.ts'
import { type Api, serve } from '../http/route.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import { sendEvents } from '../http/streams/sse.ts'
import type { Games } from './games.ts'
import type { GamesStats } from './stats.ts'

interface Reading {
  actor: Actor
  params: { serverId: string }
  request: FastifyRequest
  reply: FastifyReply
}

const NEVER = new AbortController().signal

type Follow = (lastId: string | null, signal: AbortSignal) => AsyncIterable<string>

export function gameRoutes(
  api: Api,
  { games, stats, streams }: { games: Games; stats: GamesStats; streams: Streams },
): void {
  async function follow({ actor, params, request, reply }: Reading, source: Follow): Promise<never> {
    if (request.method === 'HEAD') return reply.type('text/event-stream').send() as never
    const lastId = request.headers['last-event-id']
    const from = lastId === undefined ? null : String(lastId)
    await streams.hold(actor, params.serverId, (ended) => sendEvents(reply, (signal) => source(from, signal), ended))
    return undefined as never
  }

  const wantsEvents = ({ request }: Reading) =>
    negotiate(request.headers.accept, ['application/json', 'text/event-stream']) === 'text/event-stream'

  serve(api, powerServer, ({ actor, params, body }) => games.power(actor, params.serverId, body.action), {
    status: ({ isChange }) => (isChange ? 202 : 200),
    body: ({ server }) => server,
  })
  serve(api, readConsole, (call) => {
    const { actor, params, query, reply } = call
    if (wantsEvents(call))
      return follow(call, (lastId, signal) =>
        linesAsEvents(games.followConsole(actor, params.serverId, { lastId, q: query.q ?? null }, signal)),
      )
    return whileClientStays(reply, NEVER, (signal) => games.readConsole(actor, params.serverId, query, signal))
  })
  serve(api, sendCommand, ({ actor, params, body }) => games.sendCommand(actor, params.serverId, body.command))
  serve(api, readPlayers, ({ actor, params }) => stats.readPlayers(actor, params.serverId))
  serve(api, readStats, (call) => {
    const { actor, params, query } = call
    if (!wantsEvents(call)) return stats.read(actor, params.serverId, query)
    return follow(call, (lastId, signal) => pointsAsEvents(stats.follow(actor, params.serverId, lastId, signal)))
  })
}

async function* pointsAsEvents(batches: AsyncIterable<StatsPoint[]>): AsyncGenerator<string> {
  for await (const batch of batches)
    yield batch.map((point) => `id: ${Date.parse(point.at)}\nevent: stats\ndata: ${JSON.stringify(point)}\n\n`).join('')
}

async function* linesAsEvents(batches: AsyncIterable<ConsoleLine[]>): AsyncGenerator<string> {
  for await (const batch of batches)
    yield batch.map((line) => `id: ${line.line}\nevent: line\ndata: ${JSON.stringify(line)}\n\n`).join('')
}
