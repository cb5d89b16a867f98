// `gamekeeper server create|ls|show|set|rm`
import { GAME_IDS, type GameId } from '../contract/games.ts'
import type { Client, NewServer, Server, ServerChange } from '../sdk/index.ts'
import { command, type Family, type Options, type ValuesOf } from './command.ts'
import type { Context } from './context.ts'
import { CommandError, UsageError } from './exit-codes.ts'
import { nearest } from './nearest.ts'
import { createProgress } from './progress.ts'
import { findServer, serverIdOf, take } from './server-reference.ts'
import { type Column, formatFields, formatTable } from './text.ts'
import { formatAgo, formatSize, formatTime, orNone, readSize, readWhole } from './units.ts'

const SETTINGS = {
  game: { type: 'string', value: 'GAME', help: 'The id of the game, such as minecraft-java; "none" for none' },
  port: { type: 'string', value: 'PORT', help: 'The port that players use' },
  description: { type: 'string', value: 'TEXT', help: 'A text of your own' },
  disk: { type: 'string', value: 'SIZE', help: 'How much disk it may use, such as 20GiB; "none" for no limit' },
  backups: { type: 'string', value: 'N', help: 'How many backups it may have; "none" for no limit' },
  subdomains: { type: 'string', value: 'N', help: 'How many subdomains it may have; "none" for no limit' },
  label: { type: 'string', multiple: true, value: 'NAME=VALUE', help: 'A label; may be repeated' },
} as const satisfies Options

const create = command({
  summary: 'Create a server',
  args: ['name'],
  options: SETTINGS,
  examples: [
    'gamekeeper server create Castle --game minecraft-java --port 25565 --backups 30',
    'gamekeeper server create "Old Castle" --disk 20GiB --label owner=anna',
  ],
  async run(context, options, { name }) {
    const body: NewServer = { name, ...settingsOf(options) }
    const server = await context.client().servers.create(body, { signal: context.io.signal })
    if (context.json) context.print(server)
    else context.say(describeServer(context, server))
    return undefined
  },
})

const ls = command({
  summary: 'List servers, newest first',
  args: [],
  options: {
    game: { type: 'string', value: 'GAME', help: 'Only those of a game' },
    search: { type: 'string', value: 'TEXT', help: 'Only those with this in their name' },
    limit: { type: 'string', value: 'N', help: 'At most so many; all unless told' },
  },
  examples: ['gamekeeper server ls', 'gamekeeper server ls --game minecraft-java --json'],
  async run(context, options) {
    const limit = options.limit === undefined ? Number.POSITIVE_INFINITY : readWhole(options.limit, '--limit')
    const query = {
      limit: Math.min(100, Math.max(1, limit)),
      ...(options.game ? { game: readGame(options.game) } : {}),
      ...(options.search ? { q: options.search } : {}),
    }
    const servers = await take(context.client().servers.all(query, { signal: context.io.signal }), limit)
    if (context.json) context.print(servers)
    else if (servers.length === 0) context.note('There are no servers.')
    else context.say(formatTable(servers, columnsFor(context), context.paint))
    return undefined
  },
})

const show = command({
  summary: 'Show a server',
  args: ['server'],
  options: {},
  examples: ['gamekeeper server show Castle'],
  async run(context, _options, { server: reference }) {
    const server = await findServer(context.client(), reference, context.io.signal)
    if (context.json) context.print(server)
    else context.say(describeServer(context, server))
    return undefined
  },
})

const set = command({
  summary: 'Change a server',
  description: 'What is not named stays as it is. Labels are replaced as a whole; --label "" takes them all away.',
  args: ['server'],
  options: { name: { type: 'string', value: 'NAME', help: 'A new name' }, ...SETTINGS },
  examples: [
    'gamekeeper server set Castle --port 25566 --disk none',
    'gamekeeper server set Castle --name "Old Castle"',
  ],
  async run(context, options, { server: reference }) {
    const body: ServerChange = { ...(options.name === undefined ? {} : { name: options.name }), ...settingsOf(options) }
    if (Object.keys(body).length === 0) throw new UsageError('Nothing to change was named.')
    const client = context.client()
    const serverId = await serverIdOf(client, reference, context.io.signal)
    const server = await client.servers.change(serverId, body, { signal: context.io.signal })
    if (context.json) context.print(server)
    else context.say(describeServer(context, server))
    return undefined
  },
})

const rm = command({
  summary: 'Delete a server with its files',
  description: 'Asks for the name of the server; where there is nobody to ask, --confirm has to give it.',
  args: ['server'],
  options: {
    confirm: { type: 'string', value: 'NAME', help: 'The name of the server, exactly' },
    'no-wait': { type: 'boolean', help: 'Return once the deletion has begun' },
  },
  examples: ['gamekeeper server rm Castle', 'gamekeeper server rm Castle --confirm Castle'],
  async run(context, options, { server: reference }) {
    const client = context.client()
    const { signal } = context.io
    const server = await findServer(client, reference, signal)
    await confirm(context, server, options.confirm)
    if (options['no-wait']) {
      const job = await client.servers.delete(server.id, server.name, { signal })
      if (context.json) context.print(job)
      else context.say(`${server.name} is being deleted by ${job.id}.`)
      return undefined
    }
    await deleteAndShow(context, client, server)
    if (context.json) context.print({ id: server.id, name: server.name, deleted: true })
    else context.say(`Deleted ${server.name}.`)
    return undefined
  },
})

async function deleteAndShow(context: Context, client: Client, server: Server): Promise<void> {
  const progress = createProgress(context.io.stderr, { quiet: context.json })
  try {
    await client.servers.deleteAndWait(server.id, server.name, {
      signal: context.io.signal,
      onProgress: (job) => progress.update(`Deleting ${server.name}`, job.progress),
    })
  } finally {
    progress.end()
  }
}

async function confirm(context: Context, server: Server, given: string | undefined): Promise<void> {
  if (given === undefined && !context.canAsk) {
    throw new UsageError(
      'Deleting a server needs --confirm with its name.',
      `Add --confirm ${JSON.stringify(server.name)}.`,
    )
  }
  const question = `This deletes ${server.name} with all its files and backups. Type its name to go on: `
  if ((given ?? (await context.ask(question))) !== server.name) {
    throw new CommandError('That is not the name of the server; nothing was deleted.')
  }
}

function settingsOf(options: ValuesOf<typeof SETTINGS>): Omit<ServerChange, 'name'> {
  const game = orNone(options.game, readGame)
  const port = orNone(options.port, (text) => readWhole(text, '--port'))
  const description = orNone(options.description, (text) => text)
  const limits = withoutAbsent({
    diskBytes: orNone(options.disk, (text) => readSize(text, '--disk')),
    backups: orNone(options.backups, (text) => readWhole(text, '--backups')),
    subdomains: orNone(options.subdomains, (text) => readWhole(text, '--subdomains')),
  })
  const labels = options.label === undefined ? undefined : readLabels(options.label)
  return withoutAbsent({ game, port, description, limits: Object.keys(limits).length > 0 ? limits : undefined, labels })
}

function withoutAbsent<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}

function readGame(text: string): GameId {
  const game = GAME_IDS.find((id) => id === text)
  if (game) return game
  const close = nearest(text, GAME_IDS)
  throw new UsageError(
    `The game "${text}" is not known.`,
    close ? `Did you mean ${close}?` : `Known: ${GAME_IDS.join(', ')}.`,
  )
}

function readLabels(given: readonly string[]): Record<string, string> {
  const pairs = given
    .filter((text) => text !== '')
    .map((text) => {
      const at = text.indexOf('=')
      if (at < 1) throw new UsageError(`--label must be NAME=VALUE, not "${text}".`)
      return [text.slice(0, at), text.slice(at + 1)] as const
    })
  return Object.fromEntries(pairs)
}

const columnsFor = ({ now }: Context): Column<Server>[] => [
  { title: 'NAME', cell: ({ name }) => name, style: () => 'cyan' },
  { title: 'ID', cell: ({ id }) => id },
  { title: 'GAME', cell: ({ game }) => game ?? '-' },
  { title: 'PORT', cell: ({ port }) => String(port ?? '-'), right: true },
  { title: 'DISK', cell: diskOf, right: true },
  { title: 'STATUS', cell: ({ status }) => status, style: ({ status }) => (status === 'ready' ? 'green' : 'yellow') },
  { title: 'CREATED', cell: ({ createdAt }) => formatAgo(createdAt, now()) },
]

function diskOf({ diskUsage, limits }: Server): string {
  const used = diskUsage ? formatSize(diskUsage.sizeBytes) : '-'
  return limits.diskBytes === null ? used : `${used} of ${formatSize(limits.diskBytes)}`
}

function describeServer({ paint, now }: Context, server: Server): string {
  const { limits, labels } = server
  const limit = (value: number | null) => (value === null ? 'no limit' : `at most ${value}`)
  return formatFields(
    {
      Name: server.name,
      Id: server.id,
      Status: server.status,
      Game: server.game ?? '-',
      Port: String(server.port ?? '-'),
      Description: server.description ?? '-',
      Disk: diskOf(server),
      Backups: limit(limits.backups),
      Subdomains: limit(limits.subdomains),
      Labels:
        Object.entries(labels)
          .map(([name, value]) => `${name}=${value}`)
          .join(', ') || '-',
      Created: `${formatTime(server.createdAt)} (${formatAgo(server.createdAt, now())})`,
      Changed: `${formatTime(server.updatedAt)} (${formatAgo(server.updatedAt, now())})`,
    },
    paint,
  )
}

export const server: Family = { subcommands: { create, ls, show, set, rm } }
