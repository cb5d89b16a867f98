// What the game of a server uses, as series of points.
import { STATS_STEP_MAX_SECONDS, STATS_TIERS } from '../fixed-limits.ts'
import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Bytes, Closed, Nullable, ServerParams, type Static, Timestamp, Type } from '../schema.ts'
import { eventStreamOf } from '../stream-examples.ts'

const FINEST_SECONDS = STATS_TIERS[0].stepSeconds

const rate = (what: string) =>
  Nullable(
    Type.Number({
      minimum: 0,
      description: `Bytes that it ${what} in a second. null where it shares the network of the machine, which does not tell`,
    }),
  )

export const StatsPoint = Type.Object({
  at: Type.String({ format: 'date-time', description: 'Where the step begins that the point is about' }),
  cpuPercent: Nullable(Type.Number({ minimum: 0, description: 'Of one core: 200 is two of them' })),
  memoryBytes: Nullable(Bytes),
  diskBytes: Nullable(
    Type.Integer({
      minimum: 0,
      description: 'Its files and its trash as last measured; null until they have been measured',
    }),
  ),
  networkReceivedBytesPerSecond: rate('received'),
  networkSentBytesPerSecond: rate('sent'),
  players: Nullable(Type.Integer({ minimum: 0, description: 'The most that were online. null where nothing tells' })),
})
export type StatsPoint = Static<typeof StatsPoint>

export const Stats = Type.Object({
  since: Timestamp,
  step: Type.Integer({ description: 'Seconds from one point to the next: as asked for, or longer where less is kept' }),
  data: Type.Array(StatsPoint, { description: 'Oldest first. While the game did not run there are no points' }),
})
export type Stats = Static<typeof Stats>

export const StatsQuery = Closed({
  since: Type.Optional(
    Type.String({ format: 'date-time', description: 'One hour ago by default. Points are kept for a week' }),
  ),
  step: Type.Optional(
    Type.Integer({
      minimum: FINEST_SECONDS,
      maximum: STATS_STEP_MAX_SECONDS,
      description: 'Seconds from one point to the next; the finest that is kept since then by default',
    }),
  ),
})
export type StatsQuery = Static<typeof StatsQuery>

const example: StatsPoint = {
  at: '2026-11-15T00:00:00.000Z',
  cpuPercent: 12.5,
  memoryBytes: 1_610_612_736,
  diskBytes: 1_932_735_283,
  networkReceivedBytesPerSecond: null,
  networkSentBytesPerSecond: null,
  players: 3,
}

export const readStats = operation({
  id: 'readStats',
  method: 'GET',
  path: '/servers/{serverId}/stats',
  tag: 'Power and console',
  summary: 'Read what the game of a server uses',
  description:
    'CPU, memory, disk, network and players while it ran, kept for a week: every 10 seconds for an hour, every minute for a ' +
    'day, every 10 minutes for the rest. Longer steps are averages, of players the most. With `Accept: text/event-stream` ' +
    'each new point is sent as a `stats` event; its id is its time in milliseconds, and `Last-Event-ID` resumes after it.',
  scope: 'servers:read',
  bound: BOUNDS.stats,
  params: ServerParams,
  query: StatsQuery,
  answers: {
    200: {
      description: 'The series, or a stream of points',
      schema: Stats,
      alternatives: eventStreamOf('stats', example, Date.parse(example.at)),
      example: { since: '2026-11-14T23:00:00.000Z', step: 10, data: [example] },
    },
  },
  errors: ['not_acceptable', 'agent_unreachable'],
})
