import { CONSOLE_COMMAND_MAX_BYTES, CONSOLE_PAGE_MAX } from '../fixed-limits.ts'
import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Closed, OneOf, Page, ServerParams, type Static, TEXT, Timestamp, Type } from '../schema.ts'
import { eventStreamOf } from '../stream-examples.ts'
import { CONSOLE_SOURCES } from './console-sources.ts'

export const ConsoleLine = Type.Object({
  line: Type.Integer({ minimum: 1, description: 'Counts up for as long as the server exists, also across starts' }),
  at: Timestamp,
  source: OneOf(CONSOLE_SOURCES, {
    description: '`command` is what was sent to the game, `gamekeeper` what happened to it',
  }),
  text: Type.String({ description: 'Cut at 16 KiB. Colours are kept; bytes that are no UTF-8 are U+FFFD' }),
})
export type ConsoleLine = Static<typeof ConsoleLine>

export const ConsoleQuery = Closed({
  before: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Only lines with smaller numbers: `nextCursor` of the page before',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ pattern: '^[1-9][0-9]{0,14}$', description: 'As `before`, by the name that it has in other lists' }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: CONSOLE_PAGE_MAX, default: 50 })),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 191,
      pattern: TEXT,
      description: 'Only lines with this text, in any letter case',
    }),
  ),
})
export type ConsoleQuery = Static<typeof ConsoleQuery>

export const SentCommand = Closed({
  command: Type.String({
    minLength: 1,
    maxLength: CONSOLE_COMMAND_MAX_BYTES,
    pattern: '^[^\\x00-\\x08\\x0a-\\x1f\\x7f]+$',
    description: `One line, at most ${CONSOLE_COMMAND_MAX_BYTES} bytes`,
  }),
})

const example = {
  line: 1041,
  at: '2026-11-15T00:00:00.000Z',
  source: 'stdout',
  text: '[Server] Done (4.2s)! For help, type "help"',
}

export const readConsole = operation({
  id: 'readConsole',
  method: 'GET',
  path: '/servers/{serverId}/console',
  tag: 'Power and console',
  summary: 'Read the console of a server',
  description:
    'Newest first, across starts and crashes. With `Accept: text/event-stream` lines are followed live, oldest first; the id ' +
    'of an event is the number of its line, and `Last-Event-ID` resumes after that line. Old lines go when there are too many ' +
    'or they are too old; numbers are never given twice.',
  scope: 'console:read',
  bound: BOUNDS.console,
  params: ServerParams,
  query: ConsoleQuery,
  answers: {
    200: {
      description: 'A page of lines, or a stream of them',
      schema: Page(ConsoleLine),
      alternatives: eventStreamOf('line', example, example.line),
      example: { data: [example], nextCursor: null },
    },
  },
  errors: ['not_acceptable', 'agent_unreachable'],
})

export const sendCommand = operation({
  id: 'sendCommand',
  method: 'POST',
  path: '/servers/{serverId}/console',
  tag: 'Power and console',
  summary: 'Send a command to the game',
  description: 'One line to its standard input. It is in the console and, with who sent it, in the activity.',
  scope: 'console:write',
  bound: BOUNDS.rows,
  params: ServerParams,
  body: SentCommand,
  bodyExample: { command: 'say Backup in five minutes' },
  answers: { 202: { description: 'The game has it on its standard input' } },
  errors: [
    'too_large',
    'unsupported_media_type',
    'idempotency_conflict',
    'server_not_running',
    'server_busy',
    'agent_unreachable',
  ],
})
