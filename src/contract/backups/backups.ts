import { Job, jobExample, Progress, WorkError } from '../jobs.ts'
import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import {
  Bytes,
  Closed,
  Id,
  MULTILINE,
  Nullable,
  OneOf,
  OptionalName,
  OTHERWISE,
  Page,
  PageQuery,
  Path,
  ServerParams,
  type Static,
  Timestamp,
  Type,
} from '../schema.ts'
import { eventStreamOf } from '../stream-examples.ts'
import { BackupOffsite } from './offsite.ts'
import { Rehearsal } from './rehearsals.ts'

export const BACKUP_STATUSES = ['queued', 'running', 'completed', 'failed'] as const
export const CONSISTENCIES = ['offline', 'quiesced', 'live'] as const
/** In bytes. The schema counts characters, so the service counts again. */
export const IGNORED_MAX_BYTES = 32 * 1024

export const Ignored = Type.String({
  maxLength: IGNORED_MAX_BYTES,
  pattern: MULTILINE,
  description:
    "Patterns as in a `.gitignore`, one a line, 32 KiB at most. Where it is absent or empty, the server's own `.backupignore` counts. What the server's template leaves out comes before either",
})

export const Backup = Type.Object({
  id: Id,
  serverId: Id,
  name: Type.String(),
  ignored: Type.String({ description: 'The patterns that were used' }),
  isLocked: Type.Boolean(),
  status: OneOf(BACKUP_STATUSES),
  consistency: Nullable(
    OneOf(CONSISTENCIES, {
      description:
        '`offline`: nothing changed while it was read. `quiesced`: the game held its world still meanwhile. `live`: something changed, or a game ran and could not be held still; `warnings` says why',
    }),
  ),
  heldMs: Nullable(
    Type.Integer({ minimum: 0, description: 'For how long the game held its world still; null where none did' }),
  ),
  progress: Progress,
  fileCount: Nullable(Type.Integer()),
  sizeBytes: Nullable(Bytes),
  storedBytes: Nullable(Type.Integer({ minimum: 0, description: 'What it added to the store' })),
  checksum: Nullable(Type.String({ description: 'Of the manifest, and through it of everything in the backup' })),
  warnings: Type.Array(Type.String(), { description: 'What could not be kept as it was, the first hundred' }),
  error: Type.Union([WorkError, Type.Null()], {
    description: 'Why it failed; with a backup that has completed, `backup_damaged` when its bytes are no longer right',
  }),
  createdAt: Timestamp,
  startedAt: Nullable(Timestamp),
  completedAt: Nullable(Timestamp),
  verifiedAt: Nullable(Timestamp),
  rehearsedAt: Nullable(Timestamp),
  rehearsal: Type.Union([Rehearsal, Type.Null()], {
    description: 'How its last rehearsal ended; null where it had none. `rehearsedAt` is the last one that passed',
  }),
  offsite: Type.Union([BackupOffsite, Type.Null()], {
    description: 'Whether it is in the off-site store too; null until it has completed, and where none is configured',
  }),
})
export type Backup = Static<typeof Backup>

export const NewBackup = Closed({
  name: OptionalName,
  ignored: Type.Optional(Ignored),
  isLocked: Type.Optional(Type.Boolean({ default: false })),
})
export type NewBackup = Static<typeof NewBackup>

export const RestoreRequest = Closed(
  {
    paths: Type.Optional(
      Type.Array(Path, {
        minItems: 1,
        maxItems: 1000,
        description: 'These files and folders only; without it `mode` is required, and everything is restored',
      }),
    ),
    mode: Type.Optional(
      OneOf(['replace', 'merge'], {
        description:
          '`replace` makes the tree what it was, and what was made since goes to the trash; `merge` writes what the backup has and leaves the rest. `replace` by default where `paths` is given',
      }),
    ),
    safetyBackup: Type.Optional(
      Type.Boolean({ default: true, description: 'Take a backup of what is there now before anything is touched' }),
    ),
    targetServerId: Type.Optional(Id),
    stop: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Stop the game first where it runs, and start it again afterwards, also where the restore fails; needs the scope `power:write` too. Without it such a server is `server_running`',
      }),
    ),
  },
  {
    // Nobody replaces all files of a server by leaving something out.
    anyOf: [{ required: ['mode'] }, { required: ['paths'] }],
    [OTHERWISE]: 'must say what to restore: `mode`, `paths` or both',
  },
)
export type RestoreRequest = Static<typeof RestoreRequest>

export const FinishRequest = Closed({
  direction: OneOf(['forward', 'back'], {
    description: '`forward`: to what the backup has. `back`: to what was there before the restore',
  }),
})
export type FinishRequest = Static<typeof FinishRequest>

export const Recovery = Type.Object({
  servers: Type.Array(Id, { description: 'Servers that were unknown and are there again, without their files' }),
  adopted: Type.Array(Id, { description: 'Backups that were unknown and are in the list again' }),
  missing: Type.Array(Id, { description: 'Backups whose content is gone; they are `failed` now' }),
  damaged: Type.Array(Id, { description: 'Backups that are in the store and cannot be read' }),
})
export type Recovery = Static<typeof Recovery>

const at = '2026-11-15T00:00:00.000Z'
const example = {
  id: 'bkp_01k9zq6m3t8v5w2x7y4c1b6d9e',
  serverId: 'srv_01k9zq6m3t8v5w2x7y4c1b6d9e',
  name: 'Before the update',
  ignored: 'logs/\n*.tmp',
  isLocked: true,
  status: 'completed',
  consistency: 'quiesced',
  heldMs: 640,
  progress: { filesDone: 5030, filesTotal: 5030, bytesDone: 1_932_735_283, bytesTotal: 1_932_735_283 },
  fileCount: 5030,
  sizeBytes: 1_932_735_283,
  storedBytes: 28_311_552,
  checksum: 'b2:4f9c1d7e0a5b3c8f6e2d9a1b7c4f0e3d5a8b6c2f1e9d7a4b3c0f8e6d5a2b1c9f',
  warnings: [],
  error: null,
  createdAt: at,
  startedAt: at,
  completedAt: '2026-11-15T00:00:01.000Z',
  verifiedAt: null,
  rehearsedAt: '2026-11-15T05:00:20.000Z',
  rehearsal: { outcome: 'passed', at: '2026-11-15T05:00:20.000Z', reason: null },
  offsite: { state: 'stored', storedAt: '2026-11-15T00:00:04.000Z', error: null },
}
const queued = {
  ...example,
  status: 'queued',
  consistency: null,
  heldMs: null,
  progress: { filesDone: 0, filesTotal: null, bytesDone: 0, bytesTotal: null },
  fileCount: null,
  sizeBytes: null,
  storedBytes: null,
  checksum: null,
  startedAt: null,
  completedAt: null,
  rehearsedAt: null,
  rehearsal: null,
  offsite: null,
}
const tag = 'Backups'
const params = ServerParams
export const BackupParams = Closed({ ...ServerParams.properties, backupId: Id })
export const ONE_BACKUP = '/backups/{serverId}/{backupId}'
const bodyErrors = ['too_large', 'unsupported_media_type', 'idempotency_conflict'] as const
/** Of what goes on as a job. */
export const startedJob = (kind: string) => ({
  202: {
    description: 'The job; read it at the address in `Location`',
    schema: Job,
    example: { ...jobExample, kind },
  },
})

export const createBackup = operation({
  id: 'createBackup',
  method: 'POST',
  path: '/backups/{serverId}',
  tag,
  summary: 'Create a backup',
  description:
    'Answers at once; the work goes on in the background. One backup at a time for a server, later ones are `queued`. ' +
    'Backups that failed, and those that a restore takes for safety, do not count against the limit of the server.',
  scope: 'backups:write',
  bound: BOUNDS.job,
  params,
  body: NewBackup,
  bodyExample: { name: 'Before the update', ignored: 'logs/\n*.tmp', isLocked: true },
  answers: { 202: { description: 'The backup', schema: Backup, example: queued } },
  errors: [...bodyErrors, 'backup_limit_reached', 'server_busy'],
})

export const listBackups = operation({
  id: 'listBackups',
  method: 'GET',
  path: '/backups/{serverId}',
  tag,
  summary: 'List the backups of a server',
  description: 'Newest first.',
  scope: 'backups:read',
  bound: BOUNDS.page,
  params,
  query: Closed({ ...PageQuery, status: Type.Optional(OneOf(BACKUP_STATUSES)) }),
  answers: {
    200: { description: 'A page of backups', schema: Page(Backup), example: { data: [example], nextCursor: null } },
  },
  errors: [],
})

export const readBackup = operation({
  id: 'readBackup',
  method: 'GET',
  path: ONE_BACKUP,
  tag,
  summary: 'Read one backup',
  description:
    'With `Accept: text/event-stream` the backup is sent each time something about it changes, until it has ended.',
  scope: 'backups:read',
  bound: BOUNDS.rows,
  params: BackupParams,
  answers: {
    200: { description: 'The backup', schema: Backup, alternatives: eventStreamOf('backup', example), example },
  },
  errors: ['not_acceptable'],
})

export const lockBackup = operation({
  id: 'lockBackup',
  method: 'POST',
  path: `${ONE_BACKUP}/lock`,
  tag,
  summary: 'Lock a backup',
  description:
    'A locked backup is not deleted by anyone, nor by retention, and its server is not deleted, until it is unlocked. ' +
    'Locking a locked backup changes nothing.',
  scope: 'backups:write',
  bound: BOUNDS.rows,
  params: BackupParams,
  answers: { 200: { description: 'The backup, locked', schema: Backup, example } },
  errors: ['server_busy', 'idempotency_conflict'],
})

export const unlockBackup = operation({
  id: 'unlockBackup',
  method: 'DELETE',
  path: `${ONE_BACKUP}/lock`,
  tag,
  summary: 'Unlock a backup',
  scope: 'backups:write',
  bound: BOUNDS.rows,
  params: BackupParams,
  answers: { 200: { description: 'The backup, unlocked', schema: Backup, example: { ...example, isLocked: false } } },
  errors: ['server_busy'],
})

export const deleteBackup = operation({
  id: 'deleteBackup',
  method: 'DELETE',
  path: ONE_BACKUP,
  tag,
  summary: 'Delete a backup, or cancel one that is queued or running',
  description: 'It is gone at once; the space that only it used is given back some time later.',
  scope: 'backups:write',
  bound: BOUNDS.rows,
  params: BackupParams,
  answers: { 204: { description: 'Gone' } },
  errors: ['backup_locked', 'server_busy'],
})

export const restoreBackup = operation({
  id: 'restoreBackup',
  method: 'POST',
  path: `${ONE_BACKUP}/restore`,
  tag,
  summary: 'Restore a backup',
  description:
    'Everything is checked before anything is touched; the new tree is built beside the old one and swapped in. ' +
    'A backup of what is there now is taken first by default. With `targetServerId` it is restored into another server. ' +
    'The body says what to restore: `{"mode": "replace"}` for everything, or `paths`. A path that the backup does not ' +
    'hold is `not_found`. With `stop` a game that runs is stopped first and started again afterwards.',
  scope: 'backups:write',
  bound: BOUNDS.job,
  params: BackupParams,
  body: RestoreRequest,
  bodyExample: { paths: ['/world'], mode: 'replace', safetyBackup: true },
  answers: startedJob('restore'),
  errors: [
    ...bodyErrors,
    ...(['backup_not_ready', 'backup_damaged', 'server_busy', 'server_running', 'invalid_path'] as const),
    'agent_unreachable',
  ],
})

export const finishRestore = operation({
  id: 'finishRestore',
  method: 'POST',
  path: '/servers/{serverId}/restore/finish',
  tag,
  summary: 'Finish a restore that has stopped in the middle',
  description:
    '`forward` goes on to what the backup has. `back` takes back what was done: what was there before comes back from the ' +
    'trash, and what was placed goes away, into the trash where it was changed since. Nothing that is newer than the ' +
    'restore is lost either way. Where it stops again, both can be chosen again. `not_found` where no restore has stopped.',
  scope: 'backups:write',
  bound: BOUNDS.job,
  params,
  body: FinishRequest,
  bodyExample: { direction: 'back' },
  answers: startedJob('restore.finish'),
  errors: [...bodyErrors, 'server_busy', 'agent_unreachable'],
})

export const verifyBackup = operation({
  id: 'verifyBackup',
  method: 'POST',
  path: `${ONE_BACKUP}/verify`,
  tag,
  summary: 'Read every block of a backup and check it',
  description:
    'Sets `verifiedAt` when all is right. The result of the job names what is damaged and what it touches, and in `healed` ' +
    'what was put in place again from the off-site store. With `offsite` what that store has of the backup is read and ' +
    'checked as well: damage that is only there has `isOffsite`, and the backup is sound. Until all of it was sent there, ' +
    'that is `backup_not_ready`. `offsite_unreachable` is the error of a job that could not read what is only there.',
  scope: 'backups:write',
  bound: BOUNDS.rows,
  params: BackupParams,
  query: Closed({ offsite: Type.Optional(Type.Boolean({ default: false })) }),
  answers: startedJob('verify'),
  errors: ['backup_not_ready', 'server_busy', 'idempotency_conflict'],
})

export const recoverBackups = operation({
  id: 'recoverBackups',
  method: 'POST',
  path: '/backups/recover',
  tag,
  summary: 'Rebuild the list of backups from the store alone',
  description:
    'For the day when the database is gone: every backup in the store is taken back into the list, and a server that is ' +
    'unknown is made again, without its files, to restore into, under the name that its newest backup knows. For a store ' +
    'elsewhere there is `gamekeeper backup recover --store DIR`. Needs a token for all servers, with `servers:write` too. Safe to repeat.',
  scope: 'backups:write',
  bound: BOUNDS.store,
  answers: {
    200: {
      description: 'What was done',
      schema: Recovery,
      example: { servers: [example.serverId], adopted: [example.id], missing: [], damaged: [] },
    },
  },
  errors: ['agent_unreachable', 'disk_full', 'idempotency_conflict'],
})

export const BACKUP_OPERATIONS = [
  createBackup,
  listBackups,
  readBackup,
  lockBackup,
  unlockBackup,
  deleteBackup,
  restoreBackup,
  finishRestore,
  verifyBackup,
  recoverBackups,
] as const
