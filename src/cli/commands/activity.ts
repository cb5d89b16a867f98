// `gamekeeper activity [SERVER]` and `gamekeeper activity verify [SERVER]`
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ActivityEntry, ActivityQuery, Client, ExportFormat } from '../../sdk/index.ts'
import { EXPORT_FORMATS } from '../../sdk/index.ts'
import { command, type Family, type ValuesOf } from '../command.ts'
import type { Context } from '../context.ts'
import { EXIT, UsageError } from '../exit-codes.ts'
import { serverIdOf, take } from '../server-reference.ts'
import { type Column, formatTable, safe } from '../text.ts'
import { formatTime, readTime, readWhole } from '../units.ts'

const OPTIONS = {
  event: { type: 'string', value: 'EVENT', help: 'Only this event, or a family such as "backup.*"' },
  actor: { type: 'string', value: 'ID', help: 'Only by this token, or "system"' },
  since: { type: 'string', value: 'TIME', help: 'Not older than a time, or a duration such as 2h' },
  until: { type: 'string', value: 'TIME', help: 'Not newer than a time, or a duration such as 1d' },
  search: { type: 'string', value: 'TEXT', help: 'Only entries containing this text' },
  limit: { type: 'string', value: 'N', help: 'At most this many; 50 by default' },
  follow: { type: 'boolean', short: 'f', help: 'Show entries as they are written, until interrupted' },
  after: { type: 'string', value: 'ID', help: 'With --follow: start after this entry' },
  format: { type: 'string', value: 'ndjson|csv', help: 'Write everything that matches to standard output' },
} as const
type Values = ValuesOf<typeof OPTIONS>

const main = command({
  summary: 'Read the activity log, newest first',
  description:
    'Of one server, or of all servers if none is given. On a terminal, long details are cut; --json has all of them.\n' +
    'With --json --follow, one JSON document per line.',
  args: ['server?'],
  options: OPTIONS,
  examples: [
    'gamekeeper activity Castle --since 2h',
    'gamekeeper activity Castle --follow',
    'gamekeeper activity --event "token.*" --json',
    'gamekeeper activity Castle --format csv > castle.csv',
  ],
  async run(context, options, { server }) {
    checkCombination(options, server)
    const client = context.client()
    const serverId = server === undefined ? null : await serverIdOf(client, server, context.io.signal)
    const query = queryOf(context, options)
    if (options.format !== undefined) return writeOut(context, client, serverId, readFormat(options.format), query)
    if (options.follow && serverId !== null) return follow(context, client, serverId, query, options.after)
    return list(context, client, serverId, query, options)
  },
})

function checkCombination(options: Values, server: string | undefined): void {
  if (options.follow && options.format !== undefined) throw new UsageError('--follow and --format cannot be combined.')
  if (options.follow && server === undefined) throw new UsageError('--follow needs a server.')
  if (options.after !== undefined && !options.follow) throw new UsageError('--after needs --follow.')
  if (options.limit !== undefined && (options.follow || options.format !== undefined)) {
    throw new UsageError('--limit cannot be combined with --follow or --format.')
  }
}

async function list(
  context: Context,
  client: Client,
  serverId: string | null,
  query: ActivityQuery,
  options: Values,
): Promise<undefined> {
  const limit = options.limit === undefined ? 50 : readWhole(options.limit, '--limit')
  const paged = { ...query, limit: Math.min(100, Math.max(1, limit)) }
  const { signal } = context.io
  const entries =
    serverId === null
      ? client.activity.allOfEverything(paged, { signal })
      : client.activity.all(serverId, paged, { signal })
  const taken = await take(entries, limit)
  if (context.json) context.print(taken)
  else if (taken.length === 0) context.note('No matching entries.')
  else {
    const { isTTY, columns } = context.io.stdout
    context.say(formatTable(taken, columnsFor(serverId === null), context.paint, isTTY ? columns : undefined))
  }
}

async function follow(
  context: Context,
  client: Client,
  serverId: string,
  query: ActivityQuery,
  after: string | undefined,
): Promise<number> {
  const entries = client.activity.follow(serverId, {
    query,
    signal: context.io.signal,
    ...(after === undefined ? {} : { lastEventId: after }),
    onReconnect: () => context.note('The connection was lost; trying again.'),
  })
  for await (const entry of entries) {
    if (context.json) context.printLine(entry)
    else context.say(lineOf(entry, context))
  }
  return EXIT.interrupted
}

async function writeOut(
  context: Context,
  client: Client,
  serverId: string | null,
  format: ExportFormat,
  query: ActivityQuery,
): Promise<undefined> {
  const { signal, stdout } = context.io
  const bytes = await client.activity.export(serverId, format, query, { signal })
  await pipeline(Readable.fromWeb(bytes as never), stdout, { signal, end: false })
}

const verify = command({
  summary: 'Check that the activity has not been tampered with',
  description: 'Exits with 0 when it is intact and with 1 when an entry was altered, removed or inserted.',
  args: ['server?'],
  options: {},
  examples: ['gamekeeper activity verify', 'gamekeeper activity verify Castle --json'],
  async run(context, _options, { server }) {
    const client = context.client()
    const { signal } = context.io
    const result =
      server === undefined
        ? await client.activity.verifyEverything({ signal })
        : await client.activity.verify(await serverIdOf(client, server, signal), { signal })
    const { intact, chains, entries, fault } = result
    if (context.json) context.print(result)
    else if (intact) context.say(`${context.paint('green', 'Intact')}: ${entries} entries in ${chains} chains.`)
    else if (fault) {
      const where = `position ${fault.position} of ${fault.serverId ?? 'what concerns no server'}`
      context.say(`${context.paint('red', 'Tampered with')}: ${fault.kind} at ${where}. ${safe(fault.detail)}`)
    }
    return intact ? EXIT.ok : EXIT.failed
  },
})

function queryOf({ now }: Context, options: Values): ActivityQuery {
  const { event, actor, since, until, search } = options
  return {
    ...(event === undefined ? {} : { event }),
    ...(actor === undefined ? {} : { actor }),
    ...(since === undefined ? {} : { since: readTime(since, '--since', 'past', now()) }),
    ...(until === undefined ? {} : { until: readTime(until, '--until', 'past', now()) }),
    ...(search === undefined ? {} : { q: search }),
  }
}

function readFormat(text: string): ExportFormat {
  if (!Object.hasOwn(EXPORT_FORMATS, text)) throw new UsageError('--format must be ndjson or csv.')
  return text as ExportFormat
}

/** Ids come last: what a narrow terminal cuts off is what says least to people. */
function detailsOf({ properties }: ActivityEntry): string {
  const isId = ([name]: [string, unknown]) => Number(name.endsWith('Id'))
  const ordered = Object.entries(properties).toSorted((a, b) => isId(a) - isId(b))
  return ordered.length > 0 ? JSON.stringify(Object.fromEntries(ordered)) : ''
}

const columnsFor = (withServer: boolean): Column<ActivityEntry>[] => [
  { title: 'TIME', cell: ({ timestamp }) => formatTime(timestamp), style: () => 'dim' },
  { title: 'EVENT', cell: ({ event }) => event, style: () => 'cyan' },
  ...(withServer ? [{ title: 'SERVER', cell: ({ serverId }: ActivityEntry) => serverId ?? '-' }] : []),
  { title: 'ACTOR', cell: ({ actor }) => actor.name },
  { title: 'SOURCE', cell: ({ source }) => source },
  { title: 'ADDRESS', cell: ({ ip }) => ip ?? '-' },
  { title: 'DETAILS', cell: detailsOf },
]

function lineOf(entry: ActivityEntry, { paint }: Context): string {
  const { timestamp, event, actor, source } = entry
  return [paint('dim', formatTime(timestamp)), paint('cyan', event), safe(actor.name), source, safe(detailsOf(entry))]
    .join('  ')
    .trimEnd()
}

export const activity: Family = { main, subcommands: { verify } }
