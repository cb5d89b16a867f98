// Who plays on a server.
import { PLAYER_NAME_MAX_CHARS, PLAYER_NAMES_MAX } from '../fixed-limits.ts'
import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Nullable, OneOf, ServerParams, type Static, Timestamp, Type } from '../schema.ts'

export const PLAYERS_UNKNOWN = {
  not_running: 'the game does not run',
  not_supported: 'its template says neither how to ask nor how joins and leaves look in the console',
  no_answer: 'the game did not answer within 2 seconds, and its console does not tell',
} as const
export type PlayersUnknown = keyof typeof PLAYERS_UNKNOWN

const Count = (description: string) => Nullable(Type.Integer({ minimum: 0, description }))

export const Players = Type.Object({
  online: Count('null where it cannot be told; `reason` says why'),
  max: Count('How many may play; null where the game does not say'),
  players: Nullable(
    Type.Array(Type.Object({ name: Type.String({ description: `Cut at ${PLAYER_NAME_MAX_CHARS} characters` }) }), {
      description:
        `As the game says: at most ${PLAYER_NAMES_MAX}, and fewer than \`online\` where it names only some. ` +
        'null where it names nobody',
    }),
  ),
  source: Nullable(
    OneOf(['query', 'console'], {
      description: '`query`: the game was asked. `console`: joins and leaves were counted there',
    }),
  ),
  reason: Nullable(
    OneOf(Object.keys(PLAYERS_UNKNOWN) as [PlayersUnknown, ...PlayersUnknown[]], {
      description: Object.entries(PLAYERS_UNKNOWN)
        .map(([reason, sentence]) => `\`${reason}\`: ${sentence}.`)
        .join(' '),
    }),
  ),
  at: Timestamp,
})
export type Players = Static<typeof Players>

export const readPlayers = operation({
  id: 'readPlayers',
  method: 'GET',
  path: '/servers/{serverId}/players',
  tag: 'Power and console',
  summary: 'See who plays',
  description: 'The game is asked at most once in 10 seconds; in between, everybody gets what it said last.',
  scope: 'servers:read',
  bound: BOUNDS.players,
  params: ServerParams,
  answers: {
    200: {
      description: 'Who plays, or why that is not known',
      schema: Players,
      example: {
        online: 2,
        max: 20,
        players: [{ name: 'anna' }, { name: 'ben' }],
        source: 'query',
        reason: null,
        at: '2026-11-15T00:00:00.000Z',
      },
    },
  },
  errors: ['agent_unreachable'],
})
