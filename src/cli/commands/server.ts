// `gamekeeper server create|ls|show|set`; deleting and bringing back have a file of their own.
import { GAME_IDS } from '../../contract/games/games.ts'
import { TEMPLATE_ID_FORM } from '../../contract/games/template-format.ts'
import { isApiError, type NewServer, type Server, type ServerChange } from '../../sdk/index.ts'
import { command, type Family, type Options, type ValuesOf } from '../command.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { nearest } from '../nearest.ts'
import { findServer, serverIdOf, take } from '../server-reference.ts'
import { type Column, formatFields, formatTable } from '../text.ts'
import { formatAgo, formatSize, formatTime, orNone, readSize, readWhole } from '../units.ts'
import { rm, undelete } from './server-deletion.ts'

const SETTINGS = {
  game: { type: 'string', value: 'GAME', help: 'A template or game, such as minecraft-java; "none" for none' },
  template: { type: 'string', value: 'TEMPLATE', help: 'The same as --game' },
  variable: {
    type: 'string',
    multiple: true,
    value: 'NAME=VALUE',
    help: 'A variable of the template; may be repeated; an empty value takes it away',
  },
  port: { type: 'string', value: 'PORT', help: 'The port that players use' },
  description: { type: 'string', value: 'TEXT', help: 'A free-form description' },
  disk: { type: 'string', value: 'SIZE', help: 'How much disk it may use, such as 20GiB; "none" for no limit' },
  entries: { type: 'string', value: 'N', help: 'How many files and folders it may have; "none" for no limit' },
  backups: { type: 'string', value: 'N', help: 'How many backups it may have; "none" for no limit' },
  subdomains: { type: 'string', value: 'N', help: 'How many subdomains it may have; "none" for no limit' },
  memory: {
    type: 'string',
    value: 'SIZE',
    help: 'How much memory its game may use, such as 4GiB; "none" for no limit',
  },
  cpu: {
    type: 'string',
    value: 'PERCENT',
    help: 'How much of a core its game may use, such as 200; "none" for no limit',
  },
  processes: { type: 'string', value: 'N', help: 'How many processes its game may have; "none" for the default' },
  'auto-restart': { type: 'string', value: 'yes|no', help: 'Whether a game that has crashed is started again' },
  'sleep-after': {
    type: 'string',
    value: 'MINUTES',
    help: 'Stop the game when nobody has played for this long; "none" for never',
  },
  label: { type: 'string', multiple: true, value: 'NAME=VALUE', help: 'A label; may be repeated' },
} as const satisfies Options

const create = command({
  summary: 'Create a server',
  description:
    'With --adopt, on this machine and while the service is stopped: a directory becomes the files of the server. It is moved\n' +
    'into the data directory by one rename, so that a tree of any size takes a moment, and modes, owners, times and links\n' +
    'stay what they are. It has to be on the file system of the data directory.',
  args: ['name'],
  options: {
    ...SETTINGS,
    adopt: { type: 'string', value: 'DIR', help: 'Move this directory in as its files; stop the service first' },
    data: { type: 'string', value: 'DIR', help: 'With --adopt: the data directory; GAMEKEEPER_DATA_DIR, else ./data' },
  },
  examples: [
    'gamekeeper server create Castle --game minecraft-java --port 25565 --backups 30',
    'gamekeeper server create "Old Castle" --disk 20GiB --label owner=anna',
    'gamekeeper server create Rails --template openttd --variable MAX_CLIENTS=10',
    'gamekeeper server create Castle --adopt /home/anna/minecraft --data /srv/gamekeeper',
  ],
  async run(context, options, { name }) {
    const body: NewServer = { name, ...settingsOf(options) }
    const server = await make(context, body, options)
    if (context.json) context.print(server)
    else context.say(describeServer(context, server))
    return undefined
  },
})

async function make(context: Context, body: NewServer, { adopt, data }: { adopt?: string; data?: string }) {
  if (adopt === undefined) {
    if (data !== undefined) throw new UsageError('--data goes with --adopt DIR.')
    return explainGame(body.game, context.client().servers.create(body, { signal: context.io.signal }))
  }
  // Only now: other commands do not wait for the service to be read from disk.
  const { adoptServer } = await import('./serve.ts')
  return adoptServer(context.environment.all, { dir: adopt, data }, body)
}

const ls = command({
  summary: 'List servers, newest first',
  args: [],
  options: {
    game: { type: 'string', value: 'GAME', help: 'Only servers of this game' },
    deleted: { type: 'boolean', help: 'Only deleted servers that can be brought back' },
    search: { type: 'string', value: 'TEXT', help: 'Only those whose name contains this' },
    limit: { type: 'string', value: 'N', help: 'At most this many; all by default' },
  },
  examples: [
    'gamekeeper server ls',
    'gamekeeper server ls --game minecraft-java --json',
    'gamekeeper server ls --deleted',
  ],
  async run(context, options) {
    const limit = options.limit === undefined ? Number.POSITIVE_INFINITY : readWhole(options.limit, '--limit')
    const query = {
      limit: Math.min(100, Math.max(1, limit)),
      ...(options.game ? { game: readGame(options.game) } : {}),
      ...(options.deleted ? { deleted: true } : {}),
      ...(options.search ? { q: options.search } : {}),
    }
    const servers = await take(context.client().servers.all(query, { signal: context.io.signal }), limit)
    if (context.json) context.print(servers)
    else if (servers.length === 0)
      context.note(options.deleted ? 'There are no deleted servers.' : 'There are no servers.')
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
  description: 'Only the settings you give change. Labels are replaced as a whole; --label "" removes them all.',
  args: ['server'],
  options: { name: { type: 'string', value: 'NAME', help: 'A new name' }, ...SETTINGS },
  examples: [
    'gamekeeper server set Castle --port 25566 --disk none',
    'gamekeeper server set Castle --name "Old Castle"',
  ],
  async run(context, options, { server: reference }) {
    const body: ServerChange = { ...(options.name === undefined ? {} : { name: options.name }), ...settingsOf(options) }
    if (Object.keys(body).length === 0) throw new UsageError('Nothing to change was given.')
    const client = context.client()
    const serverId = await serverIdOf(client, reference, context.io.signal)
    const server = await explainGame(body.game, client.servers.change(serverId, body, { signal: context.io.signal }))
    if (context.json) context.print(server)
    else context.say(describeServer(context, server))
    return undefined
  },
})

function settingsOf(options: ValuesOf<typeof SETTINGS>): Omit<ServerChange, 'name'> {
  if (options.game !== undefined && options.template !== undefined)
    throw new UsageError('--game and --template are the same: use one of them.')
  const game = orNone(options.game ?? options.template, readGame)
  const variables = options.variable === undefined ? undefined : readVariables(options.variable)
  const port = orNone(options.port, (text) => readWhole(text, '--port'))
  const description = orNone(options.description, (text) => text)
  const limits = withoutAbsent({
    diskBytes: orNone(options.disk, (text) => readSize(text, '--disk')),
    entries: orNone(options.entries, (text) => readWhole(text, '--entries')),
    backups: orNone(options.backups, (text) => readWhole(text, '--backups')),
    subdomains: orNone(options.subdomains, (text) => readWhole(text, '--subdomains')),
    memoryBytes: orNone(options.memory, (text) => readSize(text, '--memory')),
    cpuPercent: orNone(options.cpu, (text) => readWhole(text, '--cpu')),
    processes: orNone(options.processes, (text) => readWhole(text, '--processes')),
  })
  const labels = options.label === undefined ? undefined : readLabels(options.label)
  const autoRestart = options['auto-restart'] === undefined ? undefined : readYesOrNo(options['auto-restart'])
  const sleep = orNone(options['sleep-after'], (text) => ({ afterMinutes: readWhole(text, '--sleep-after') }))
  const anyLimits = Object.keys(limits).length > 0 ? limits : undefined
  return withoutAbsent({ game, variables, port, description, limits: anyLimits, labels, autoRestart, sleep })
}

function readYesOrNo(text: string): boolean {
  if (text !== 'yes' && text !== 'no') throw new UsageError('--auto-restart must be yes or no.')
  return text === 'yes'
}

function withoutAbsent<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}

function readGame(text: string): string {
  if (new RegExp(TEMPLATE_ID_FORM).test(text)) return text
  throw unknownGame(text)
}

/** Templates of the user's own are known to the service only. */
async function explainGame<T>(game: string | null | undefined, asked: Promise<T>): Promise<T> {
  return asked.catch((error: unknown) => {
    const isGame = isApiError(error) && error.errors.some(({ path }) => path === '/game')
    throw isGame && typeof game === 'string' ? unknownGame(game) : error
  })
}

function unknownGame(text: string): UsageError {
  const close = nearest(text, GAME_IDS)
  const known = 'See "gamekeeper template ls".'
  return new UsageError(`The game "${text}" is not known.`, close ? `Did you mean ${close}?` : known)
}

function readLabels(given: readonly string[]): Record<string, string> {
  const labels = given.filter((text) => text !== '')
  return Object.fromEntries(labels.map((text) => readPair(text, '--label')))
}

function readVariables(given: readonly string[]): Record<string, string | null> {
  const pairs = given.map((text) => readPair(text, '--variable'))
  return Object.fromEntries(pairs.map(([name, value]) => [name, value === '' ? null : value]))
}

function readPair(text: string, option: string): [string, string] {
  const at = text.indexOf('=')
  // The value is never repeated: it may be a secret.
  if (at < 1) throw new UsageError(`${option} must be NAME=VALUE.`)
  return [text.slice(0, at), text.slice(at + 1)]
}

const shownVariables = ({ variables }: Server) =>
  Object.entries(variables)
    .map(([name, value]) => `${name}=${value ?? '(not shown)'}`)
    .join(', ')

const columnsFor = ({ now }: Context): Column<Server>[] => [
  { title: 'NAME', cell: ({ name }) => name, style: () => 'cyan' },
  { title: 'ID', cell: ({ id }) => id },
  { title: 'GAME', cell: ({ game }) => game ?? '-' },
  { title: 'PORT', cell: ({ port }) => String(port ?? '-'), right: true },
  { title: 'DISK', cell: diskOf, right: true },
  { title: 'STATUS', cell: ({ status }) => status, style: ({ status }) => (status === 'ready' ? 'green' : 'yellow') },
  { title: 'POWER', cell: ({ power }) => power.state },
  { title: 'CREATED', cell: ({ createdAt }) => formatAgo(createdAt, now()) },
]

function diskOf({ diskUsage, limits }: Server): string {
  const used = diskUsage ? formatSize(diskUsage.sizeBytes) : '-'
  return limits.diskBytes === null ? used : `${used} of ${formatSize(limits.diskBytes)}`
}

function describeServer({ paint, now }: Context, server: Server): string {
  const { limits, labels } = server
  const limit = (value: number | null) => (value === null ? 'no limit' : `at most ${value.toLocaleString('en')}`)
  return formatFields(
    {
      Name: server.name,
      Id: server.id,
      Status: server.status,
      Power: server.power.step === null ? server.power.state : `${server.power.state}: ${server.power.step}`,
      ...(server.deletion ? { 'Gone for good': formatTime(server.deletion.purgeAt) } : {}),
      Game: server.game ?? '-',
      Variables: shownVariables(server) || '-',
      Port: String(server.port ?? '-'),
      Description: server.description ?? '-',
      Disk: diskOf(server),
      'Files and folders': limit(limits.entries),
      Backups: limit(limits.backups),
      Subdomains: limit(limits.subdomains),
      ...(server.sleep ? { Sleeps: `after ${server.sleep.afterMinutes} minutes without players` } : {}),
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

export const server: Family = { subcommands: { create, ls, show, set, rm, undelete } }
