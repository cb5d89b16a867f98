// `gamekeeper stats SERVER`, `gamekeeper players SERVER`
import type { Players, StatsPoint } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { EXIT } from '../exit-codes.ts'
import { serverIdOf } from '../server-reference.ts'
import { type Column, formatTable, safe } from '../text.ts'
import { formatSize, formatTime, readTime, readWhole } from '../units.ts'

const UNKNOWN = '-'
const size = (bytes: number | null) => (bytes === null ? UNKNOWN : formatSize(bytes))
const rate = (bytes: number | null) => (bytes === null ? UNKNOWN : `${formatSize(bytes)}/s`)

const COLUMNS: readonly Column<StatsPoint>[] = [
  { title: 'TIME', cell: ({ at }) => formatTime(at) },
  { title: 'CPU', cell: ({ cpuPercent }) => (cpuPercent === null ? UNKNOWN : `${cpuPercent} %`), right: true },
  { title: 'MEMORY', cell: ({ memoryBytes }) => size(memoryBytes), right: true },
  { title: 'DISK', cell: ({ diskBytes }) => size(diskBytes), right: true },
  { title: 'RECEIVED', cell: (point) => rate(point.networkReceivedBytesPerSecond), right: true },
  { title: 'SENT', cell: (point) => rate(point.networkSentBytesPerSecond), right: true },
  { title: 'PLAYERS', cell: ({ players }) => (players === null ? UNKNOWN : String(players)), right: true },
]

const statsCommand = command({
  summary: 'Show what the game of a server uses',
  description:
    'CPU is of one core: 200 % is two of them. Kept every 10 seconds for an hour, every minute for a day and every 10 minutes for\n' +
    'a week; while the game does not run there is nothing. "-" is what cannot be told.',
  args: ['server'],
  options: {
    since: { type: 'string', value: 'TIME', help: 'A time, or a duration such as 2h; 10m by default' },
    step: { type: 'string', value: 'SECONDS', help: 'From one row to the next; by default as fine as is kept' },
    watch: { type: 'boolean', short: 'w', help: 'Show each measurement as it is made, until interrupted' },
  },
  examples: [
    'gamekeeper stats Castle',
    'gamekeeper stats Castle --since 1d --step 3600',
    'gamekeeper stats Castle --watch',
  ],
  async run(context, options, { server }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const since = readTime(options.since ?? '10m', '--since', 'past', context.now())
    const step = options.step === undefined ? {} : { step: readWhole(options.step, '--step') }
    const stats = await client.stats.read(serverId, { since, ...step }, { signal })
    if (!options.watch) {
      if (context.json) context.print(stats)
      else if (stats.data.length === 0) context.note('Nothing was measured: the game did not run.')
      else context.say(formatTable(stats.data, COLUMNS, context.paint, context.io.stdout.columns))
      return undefined
    }
    const last = stats.data.at(-1)
    if (last) show(context, last, true)
    const points = client.stats.follow(serverId, {
      ...(last ? { lastEventId: String(Date.parse(last.at)) } : {}),
      signal,
      onReconnect: () => context.note('The connection was lost; trying again.'),
    })
    let hasHead = last !== undefined
    for await (const point of points) {
      show(context, point, !hasHead)
      hasHead = true
    }
    return EXIT.interrupted
  },
})

/** A row by itself: each as wide as the head above it, or wider. */
function show({ json, printLine, say, paint }: Context, point: StatsPoint, withHead: boolean): void {
  if (json) {
    printLine(point)
    return
  }
  const padded = COLUMNS.map((column) => ({ ...column, cell: (row: StatsPoint) => column.cell(row).padStart(WIDTH) }))
  const [head = '', row = ''] = formatTable([point], padded, paint).split('\n')
  say(withHead ? `${head}\n${row}` : row)
}

const WIDTH = 10

const REASONS = {
  not_running: 'The game does not run.',
  not_supported: 'Its template does not say how to find out who plays.',
  no_answer: 'The game does not answer.',
} as const

const playersCommand = command({
  summary: 'Show who plays on a server',
  description: 'The game is asked, at most once in 10 seconds; where it cannot be, its console is counted.',
  args: ['server'],
  options: {},
  examples: ['gamekeeper players Castle'],
  async run(context, _options, { server }) {
    const client = context.client()
    const { signal } = context.io
    const players = await client.players.read(await serverIdOf(client, server, signal), { signal })
    if (context.json) context.print(players)
    else context.say(describe(players))
    return undefined
  },
})

function describe({ online, max, players, reason }: Players): string {
  if (online === null) return REASONS[reason ?? 'no_answer']
  const count = max === null ? `${online} online` : `${online} of ${max} online`
  return [count, ...(players ?? []).map(({ name }) => `  ${safe(name)}`)].join('\n')
}

export const stats: Family = { main: statsCommand }
export const players: Family = { main: playersCommand }
