// `gamekeeper console SERVER`
import { createInterface } from 'node:readline'
import type { Client, ConsoleLine } from '../../sdk/index.ts'
import { isApiError } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { EXIT, UsageError } from '../exit-codes.ts'
import { createSearchableInput } from '../history-search.ts'
import { serverIdOf, take } from '../server-reference.ts'
import { safe } from '../text.ts'
import { formatTime, readWhole } from '../units.ts'

const PAGE = 100

const main = command({
  summary: 'Read the console of a server, follow it, and send commands',
  description:
    'On a terminal: shows the last lines, follows what the game writes, and sends what you type, until Ctrl-C. The game goes on.\n' +
    'Arrow keys bring earlier commands back, Ctrl-R searches them. Piped, or with --search or --send, it does that one thing and ends.',
  args: ['server'],
  options: {
    lines: { type: 'string', short: 'n', value: 'N', help: 'At most this many of the last lines; 50 by default' },
    search: { type: 'string', value: 'TEXT', help: 'Only lines containing this text' },
    follow: { type: 'boolean', short: 'f', help: 'Show lines as they are written, until interrupted' },
    send: { type: 'string', value: 'COMMAND', help: 'Send this to the game and return' },
    times: { type: 'boolean', help: 'Show when each line was written' },
  },
  examples: [
    'gamekeeper console Castle',
    'gamekeeper console Castle --search "joined the game" --lines 200',
    'gamekeeper console Castle --send "say Backup in five minutes"',
    'gamekeeper console Castle --follow --json',
  ],
  async run(context, options, { server }) {
    if (options.send !== undefined && (options.follow || options.search !== undefined))
      throw new UsageError('--send cannot be combined with --follow or --search.')
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    if (options.send !== undefined) {
      await client.console.send(serverId, options.send, { signal: context.io.signal })
      return undefined
    }
    const limit = options.lines === undefined ? 50 : readWhole(options.lines, '--lines')
    const q = options.search === undefined ? {} : { q: options.search }
    const isInteractive = context.canAsk && options.search === undefined
    const show = (line: ConsoleLine) => print(context, line, options.times ?? false)
    const query = { ...q, limit: Math.min(PAGE, Math.max(1, limit)) }
    const last = await take(client.console.all(serverId, query, { signal: context.io.signal }), limit)
    if (context.json && !options.follow) context.print(last.toReversed())
    else for (const line of last.toReversed()) show(line)
    if (!options.follow && !isInteractive) return undefined
    const typing = isInteractive ? sendTyped(context, client, serverId, commandsOf(last)) : undefined
    const lastEventId = last[0] ? { lastEventId: String(last[0].line) } : {}
    const lines = client.console.follow(serverId, {
      ...q,
      ...lastEventId,
      signal: typing ? AbortSignal.any([context.io.signal, typing.left]) : context.io.signal,
      onReconnect: () => context.note('The connection was lost; trying again.'),
    })
    for await (const line of lines) show(line)
    typing?.close()
    return EXIT.interrupted
  },
})

/** Colours of the game are left out: what steers a terminal is shown, not obeyed. */
function print({ json, printLine, say, paint }: Context, line: ConsoleLine, withTime: boolean): void {
  if (json) {
    printLine(line)
    return
  }
  const text = safe(line.text.replace(COLOUR, ''))
  const shown =
    line.source === 'command' ? paint('cyan', `> ${text}`) : line.source === 'gamekeeper' ? paint('dim', text) : text
  say(withTime ? `${paint('dim', formatTime(line.at))}  ${shown}` : shown)
}

const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]{0,32}[A-Za-z]`, 'g')

/** The newest first, each once. */
const commandsOf = (lines: readonly ConsoleLine[]): string[] => [
  ...new Set(lines.filter(({ source }) => source === 'command').map(({ text }) => text)),
]

/** What is typed goes to the game, a line at a time, with the history that a shell has: what others sent is in it too. */
function sendTyped(
  context: Context,
  client: Client,
  serverId: string,
  history: string[],
): { left: AbortSignal; close(): void } {
  const left = new AbortController()
  const { stdin, stderr, signal } = context.io
  const searchable = createSearchableInput({ stdin, output: stderr })
  const lines = createInterface({ input: searchable.input, output: stderr, prompt: '', terminal: true, history })
  searchable.attach(lines, history)
  lines.on('SIGINT', () => left.abort())
  lines.on('close', () => left.abort())
  lines.on('line', (text) => {
    if (text.trim() === '') return
    client.console.send(serverId, text, { signal }).catch((error: unknown) => {
      context.note(isApiError(error) ? error.message : String(error))
    })
  })
  return {
    left: left.signal,
    close() {
      lines.close()
      searchable.close()
    },
  }
}

export const gameConsole: Family = { main }
