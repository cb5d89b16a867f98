import { DEFAULT_ENTRIES_MAX, TEMPLATE_VARIABLES_MAX } from './fixed-limits.ts'
import { GAME_IDS } from './games/games.ts'
import { Power, Runtime } from './games/power.ts'
import { SleepSetting } from './games/sleep.ts'
import { TemplateId, VariableName } from './games/template-format.ts'
import { Job, jobExample } from './jobs.ts'
import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import {
  Bytes,
  Closed,
  Id,
  MULTILINE,
  Name,
  Nullable,
  OneOf,
  OptionalName,
  Page,
  PageQuery,
  ServerParams,
  type Static,
  TEXT,
  Timestamp,
  Type,
} from './schema.ts'
import { Limits, NewLimits } from './server-limits.ts'

const Description = Type.String({ maxLength: 2000, pattern: MULTILINE })
const GameId = Type.String({
  ...TemplateId,
  description: `The id of a template, shipped or your own, or of a game that we know: ${GAME_IDS.join(', ')}`,
})
const Port = Type.Integer({ minimum: 1, maximum: 65535 })
const Labels = Type.Record(
  Type.String({ pattern: '^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$' }),
  Type.String({ maxLength: 191, pattern: `^$|${TEXT}` }),
  { additionalProperties: false, maxProperties: 32, description: 'Up to 32 names and values of your own' },
)

const VariableValue = Type.Unsafe<string | number | boolean | null>({
  type: ['string', 'number', 'boolean', 'null'],
  maxLength: 4096,
})

export const SERVER_STATUSES = ['ready', 'deleting', 'deleted', 'undeleting', 'purging'] as const

/** What goes for good when a server is purged. */
export const Freed = Type.Object({
  files: Type.Object({ sizeBytes: Bytes }),
  trash: Type.Object({ sizeBytes: Bytes }),
  backups: Type.Object({
    count: Type.Integer(),
    storedBytes: Type.Integer({ description: 'What these backups added to the store; blocks that others use stay' }),
  }),
  subdomains: Type.Array(Type.String(), { description: 'Hostnames that are kept for the server until then' }),
})
export type Freed = Static<typeof Freed>

export const Deletion = Type.Object({
  deletedAt: Timestamp,
  purgeAt: Type.String({ format: 'date-time', description: 'Until then it can be brought back' }),
  frees: Freed,
})

export const DeletionPlan = Type.Object({
  purgeAt: Type.String({ format: 'date-time', description: 'When it would be gone for good, were it deleted now' }),
  lockedBackups: Type.Integer({ description: 'While there are any, the server is not deleted' }),
  frees: Freed,
})
export type DeletionPlan = Static<typeof DeletionPlan>

export const Server = Type.Object({
  id: Id,
  name: Name,
  description: Nullable(Description),
  game: Nullable(GameId),
  variables: Type.Record(Type.String(), VariableValue, {
    description: 'What was given to the variables of the template. null is a secret, or one that is not shown',
  }),
  port: Nullable(Port),
  limits: Limits,
  labels: Type.Record(Type.String(), Type.String()),
  status: OneOf(SERVER_STATUSES, {
    description:
      'Only a server that is `ready` takes changes. A `deleted` one can be brought back, with everything it had, until it is purged',
  }),
  deletion: Type.Union([Deletion, Type.Null()], { description: 'null unless the server is deleted' }),
  diskUsage: Nullable(
    Type.Object({ sizeBytes: Bytes, measuredAt: Timestamp }, { description: 'null until it has been measured' }),
  ),
  unfinishedRestore: Nullable(
    Type.Object(
      {
        jobId: Id,
        backupId: Type.String(),
        since: Timestamp,
        path: Nullable(Type.String({ description: 'Where it stopped, if at one place' })),
        reason: Type.String(),
      },
      {
        description:
          'A restore that has stopped in the middle. Until it is finished, forward or back, the server is busy: its files take no changes, and it takes no backup and no other restore',
      },
    ),
  ),
  power: Power,
  runtime: Nullable(Runtime),
  autoRestart: Type.Boolean({ description: 'Whether a game that has crashed is started again' }),
  sleep: Nullable(SleepSetting),
  createdAt: Timestamp,
  updatedAt: Timestamp,
})
export type Server = Static<typeof Server>

export const NewServer = Closed({
  name: Name,
  description: Type.Optional(Nullable(Description)),
  game: Type.Optional(Nullable(GameId)),
  variables: Type.Optional(
    Type.Record(VariableName, VariableValue, {
      additionalProperties: false,
      maxProperties: TEMPLATE_VARIABLES_MAX,
      description: 'For variables of the template. Those that are absent stay as they are; null takes a value away',
    }),
  ),
  port: Type.Optional(Nullable(Port)),
  limits: Type.Optional(NewLimits),
  labels: Type.Optional(Labels),
  autoRestart: Type.Optional(
    Type.Boolean({ description: 'Whether a game that has crashed is started again. true by default' }),
  ),
  sleep: Type.Optional(
    Nullable(
      Closed(SleepSetting.properties, {
        description:
          'Stops the game when nobody has played for this long, and starts it when somebody comes to play. null, the default: ' +
          'never. The template has to tell who plays',
      }),
    ),
  ),
})
export type NewServer = Static<typeof NewServer>

export const ServerChange = Closed(
  { ...NewServer.properties, name: OptionalName },
  { minProperties: 1, description: 'Fields that are absent stay as they are. `labels` is replaced as a whole' },
)
export type ServerChange = Static<typeof ServerChange>

export const serverExample = {
  id: 'srv_01k9zq6m3t8v5w2x7y4c1b6d9e',
  name: 'Castle',
  description: 'The old world, since 2019',
  game: 'minecraft-java',
  variables: { MAX_PLAYERS: 10 },
  port: 25565,
  limits: {
    diskBytes: 21_474_836_480,
    entries: DEFAULT_ENTRIES_MAX,
    backups: 30,
    subdomains: 2,
    memoryBytes: 4_294_967_296,
    cpuPercent: 200,
    processes: 512,
  },
  labels: { owner: 'anna' },
  status: 'ready',
  deletion: null,
  diskUsage: { sizeBytes: 1_932_735_283, measuredAt: '2026-11-15T00:00:00.000Z' },
  unfinishedRestore: null,
  power: { state: 'stopped', since: null, step: null, exit: null },
  runtime: null,
  autoRestart: true,
  sleep: { afterMinutes: 30 },
  createdAt: '2026-11-15T00:00:00.000Z',
  updatedAt: '2026-11-15T00:00:00.000Z',
}

const frees = {
  files: { sizeBytes: 1_932_735_283 },
  trash: { sizeBytes: 4_194_304 },
  backups: { count: 12, storedBytes: 2_147_483_648 },
  subdomains: ['castle.play.example.org'],
}

const bodyErrors = ['too_large', 'unsupported_media_type'] as const

export const createServer = operation({
  id: 'createServer',
  method: 'POST',
  path: '/servers',
  tag: 'Servers',
  summary: 'Create a server',
  description:
    'Needs a token for all servers: a token for some servers cannot reach the one it would make. ' +
    '`limits` need the scope `servers:admin` too.',
  scope: 'servers:write',
  bound: BOUNDS.body,
  body: NewServer,
  bodyExample: { name: 'Castle', game: 'minecraft-java', port: 25565, limits: { backups: 30 } },
  answers: { 201: { description: 'The server; its folder is there', schema: Server, example: serverExample } },
  errors: [...bodyErrors, 'idempotency_conflict', 'agent_unreachable', 'disk_full'],
})

export const listServers = operation({
  id: 'listServers',
  method: 'GET',
  path: '/servers',
  tag: 'Servers',
  summary: 'List the servers that the token can see',
  description: 'Newest first. Deleted ones are listed apart.',
  scope: 'servers:read',
  bound: BOUNDS.page,
  query: Closed({
    ...PageQuery,
    deleted: Type.Optional(Type.Boolean({ description: 'true: those that are deleted and can be brought back' })),
    game: Type.Optional(GameId),
    q: Type.Optional(Type.String({ minLength: 1, maxLength: 191, pattern: TEXT, description: 'Part of the name' })),
  }),
  answers: {
    200: {
      description: 'A page of servers',
      schema: Page(Server),
      example: { data: [serverExample], nextCursor: null },
    },
  },
  errors: [],
})

export const readServer = operation({
  id: 'readServer',
  method: 'GET',
  path: '/servers/{serverId}',
  tag: 'Servers',
  summary: 'Read one server',
  scope: 'servers:read',
  bound: BOUNDS.rows,
  params: ServerParams,
  answers: { 200: { description: 'The server', schema: Server, example: serverExample } },
  errors: [],
})

export const changeServer = operation({
  id: 'changeServer',
  method: 'PATCH',
  path: '/servers/{serverId}',
  tag: 'Servers',
  summary: 'Change a server',
  description: '`limits` need the scope `servers:admin` too, and a token for all servers.',
  scope: 'servers:write',
  bound: BOUNDS.body,
  params: ServerParams,
  body: ServerChange,
  bodyExample: { description: 'Moved to the new disk', labels: { owner: 'anna' } },
  answers: { 200: { description: 'The server as it is now', schema: Server, example: serverExample } },
  errors: [...bodyErrors, 'server_busy'],
})

export const deleteServer = operation({
  id: 'deleteServer',
  method: 'DELETE',
  path: '/servers/{serverId}',
  tag: 'Servers',
  summary: 'Delete a server',
  description:
    'The body repeats the name of the server as confirmation. Refused while the server has locked backups. The job ends ' +
    'work that is under way and takes the names out of DNS. Files, backups, schedules and names are then kept for ' +
    '`GAMEKEEPER_DELETED_SERVER_DAYS`; until then one call brings everything back. With `purge` it is gone for good at ' +
    'once, also where it is deleted already.',
  scope: 'servers:write',
  bound: BOUNDS.body,
  params: ServerParams,
  body: Closed({
    name: Type.String({ description: 'The name of the server, exactly' }),
    purge: Type.Optional(Type.Boolean({ description: 'For good, at once. false by default' })),
  }),
  bodyExample: { name: 'Castle' },
  answers: { 202: { description: 'The job that deletes it', schema: Job, example: jobExample } },
  errors: [...bodyErrors, 'backup_locked', 'server_busy', 'server_running'],
})

export const planDeletion = operation({
  id: 'planDeletion',
  method: 'GET',
  path: '/servers/{serverId}/deletion',
  tag: 'Servers',
  summary: 'See what deleting a server would free',
  description: 'Nothing is changed. For a server that is deleted already: what purging it will free.',
  scope: 'servers:read',
  bound: BOUNDS.backups,
  params: ServerParams,
  answers: {
    200: {
      description: 'What would go',
      schema: DeletionPlan,
      example: { purgeAt: '2026-11-22T00:00:00.000Z', lockedBackups: 0, frees },
    },
  },
  errors: ['agent_unreachable'],
})

export const undeleteServer = operation({
  id: 'undeleteServer',
  method: 'POST',
  path: '/servers/{serverId}/undelete',
  tag: 'Servers',
  summary: 'Bring a deleted server back',
  description:
    'With its files, trash, backups, schedules, retention, labels and limits as they were. Its names are published again. ' +
    'Possible until the server is purged.',
  scope: 'servers:write',
  bound: BOUNDS.rows,
  params: ServerParams,
  answers: {
    202: {
      description: 'The job that brings it back',
      schema: Job,
      example: { ...jobExample, kind: 'server.undelete' },
    },
  },
  errors: ['server_busy', 'already_exists', 'idempotency_conflict'],
})
