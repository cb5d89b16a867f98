import { ArchiveFormat, DownloadLocation } from './files.ts'
import { Job, jobExample, Progress, WorkError } from './jobs.ts'
import { operation } from './operation.ts'
import {
  Bytes,
  Closed,
  Id,
  MULTILINE,
  Name,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  ServerParams,
  type Static,
  Timestamp,
  Type,
} from './schema.ts'

export const BACKUP_STATUSES = ['queued', 'running', 'completed', 'failed'] as const
export const CONSISTENCIES = ['offline', 'quiesced', 'live'] as const
/** In bytes. The schema counts characters, so the service counts again. */
export const IGNORED_MAX_BYTES = 32 * 1024

const Path = Type.String({ minLength: 1, maxLength: 4096 })
const Directory = Type.Optional(Type.String({ minLength: 1, maxLength: 4096, default: '/' }))
const EntryKind = OneOf(['file', 'directory', 'symlink'])
export const Ignored = Type.String({
  maxLength: IGNORED_MAX_BYTES,
  pattern: MULTILINE,
  description:
    "Patterns as in a `.gitignore`, one a line, 32 KiB at most. Where it is absent or empty, the server's own `.backupignore` counts",
})

export const Backup = Type.Object({
  id: Id,
  serverId: Id,
  name: Type.String(),
  ignored: Type.String({ description: 'The patterns that were used' }),
  isLocked: Type.Boolean(),
  status: OneOf(BACKUP_STATUSES),
  consistency: Nullable(
    OneOf(CONSISTENCIES, { description: '`offline`: nothing changed while it was read. `live`: something did' }),
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
})
export type Backup = Static<typeof Backup>

export const NewBackup = Closed({
  name: Type.Optional(Name),
  ignored: Type.Optional(Ignored),
  isLocked: Type.Optional(Type.Boolean({ default: false })),
})
export type NewBackup = Static<typeof NewBackup>

export const RestoreRequest = Closed({
  paths: Type.Optional(
    Type.Array(Path, {
      minItems: 1,
      maxItems: 1000,
      description: 'These files and folders only; everything unless told',
    }),
  ),
  mode: Type.Optional(
    OneOf(['replace', 'merge'], {
      default: 'replace',
      description:
        '`replace` makes the tree what it was, and what was made since goes to the trash; `merge` writes what the backup has and leaves the rest',
    }),
  ),
  safetyBackup: Type.Optional(
    Type.Boolean({ default: true, description: 'Take a backup of what is there now before anything is touched' }),
  ),
  targetServerId: Type.Optional(Id),
})
export type RestoreRequest = Static<typeof RestoreRequest>

export const BackupFile = Type.Object({
  name: Type.String(),
  path: Type.String(),
  kind: EntryKind,
  sizeBytes: Bytes,
  modifiedAt: Timestamp,
  mode: Type.String({ description: 'Four octal digits' }),
  symlinkTarget: Nullable(Type.String()),
})
export type BackupFile = Static<typeof BackupFile>

export const FileVersion = Type.Object({
  backupId: Id,
  backupCreatedAt: Timestamp,
  path: Type.String(),
  kind: EntryKind,
  sizeBytes: Bytes,
  modifiedAt: Timestamp,
  version: Type.String({ description: 'Equal where the content is equal' }),
})
export type FileVersion = Static<typeof FileVersion>

export const BackupChange = Type.Object({
  path: Type.String(),
  kind: EntryKind,
  change: OneOf(['added', 'removed', 'changed']),
  fromBytes: Nullable(Bytes),
  toBytes: Nullable(Bytes),
})
export type BackupChange = Static<typeof BackupChange>

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
  consistency: 'offline',
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
}
const queued = {
  ...example,
  status: 'queued',
  consistency: null,
  progress: { filesDone: 0, filesTotal: null, bytesDone: 0, bytesTotal: null },
  fileCount: null,
  sizeBytes: null,
  storedBytes: null,
  checksum: null,
  startedAt: null,
  completedAt: null,
}
const fileExample = {
  name: 'level.dat',
  path: '/world/level.dat',
  kind: 'file',
  sizeBytes: 2048,
  modifiedAt: at,
  mode: '0644',
  symlinkTarget: null,
}

const tag = 'Backups'
const params = ServerParams
const BackupParams = Closed({ ...ServerParams.properties, backupId: Id })
const one = '/backups/{serverId}/{backupId}'
const bodyErrors = ['too_large', 'unsupported_media_type', 'idempotency_conflict'] as const
const readErrors = ['backup_not_ready', 'backup_damaged', 'agent_unreachable'] as const
const job = (kind: string) => ({
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
  path: one,
  tag,
  summary: 'Read one backup',
  description:
    'With `Accept: text/event-stream` the backup is sent each time something about it changes, until it has ended.',
  scope: 'backups:read',
  params: BackupParams,
  answers: {
    200: { description: 'The backup', schema: Backup, alternatives: ['text/event-stream'], example },
  },
  errors: ['not_acceptable'],
})

export const lockBackup = operation({
  id: 'lockBackup',
  method: 'POST',
  path: `${one}/lock`,
  tag,
  summary: 'Lock a backup',
  description:
    'A locked backup is not deleted by anyone, nor by retention, and its server is not deleted, until it is unlocked. ' +
    'Locking a locked backup changes nothing.',
  scope: 'backups:write',
  params: BackupParams,
  answers: { 200: { description: 'The backup, locked', schema: Backup, example } },
  errors: ['server_busy', 'idempotency_conflict'],
})

export const unlockBackup = operation({
  id: 'unlockBackup',
  method: 'DELETE',
  path: `${one}/lock`,
  tag,
  summary: 'Unlock a backup',
  scope: 'backups:write',
  params: BackupParams,
  answers: { 200: { description: 'The backup, unlocked', schema: Backup, example: { ...example, isLocked: false } } },
  errors: ['server_busy'],
})

export const deleteBackup = operation({
  id: 'deleteBackup',
  method: 'DELETE',
  path: one,
  tag,
  summary: 'Delete a backup, or cancel one that is queued or running',
  description: 'It is gone at once; the space that only it used is given back some time later.',
  scope: 'backups:write',
  params: BackupParams,
  answers: { 204: { description: 'Gone' } },
  errors: ['backup_locked', 'server_busy'],
})

export const restoreBackup = operation({
  id: 'restoreBackup',
  method: 'POST',
  path: `${one}/restore`,
  tag,
  summary: 'Restore a backup',
  description:
    'Everything is checked before anything is touched; the new tree is built beside the old one and swapped in. ' +
    'A backup of what is there now is taken first unless told not to. With `targetServerId` it is restored into another server.',
  scope: 'backups:write',
  params: BackupParams,
  body: RestoreRequest,
  bodyExample: { paths: ['/world'], mode: 'replace', safetyBackup: true },
  answers: job('restore'),
  errors: [...bodyErrors, 'backup_not_ready', 'backup_damaged', 'server_busy'],
})

export const verifyBackup = operation({
  id: 'verifyBackup',
  method: 'POST',
  path: `${one}/verify`,
  tag,
  summary: 'Read every block of a backup and check it',
  description: 'Sets `verifiedAt` when all is right. The result of the job names what is damaged and what it touches.',
  scope: 'backups:write',
  params: BackupParams,
  answers: job('verify'),
  errors: ['backup_not_ready', 'server_busy', 'idempotency_conflict'],
})

export const downloadBackup = operation({
  id: 'downloadBackup',
  method: 'GET',
  path: `${one}/download`,
  tag,
  summary: 'Download a backup as an archive',
  description:
    'The same bytes every time, with `ETag` and ranges, so that a broken download resumes. ' +
    'The size is known in advance for `tar` alone; a range of another format makes the archive once to measure it.',
  scope: 'backups:read',
  params: BackupParams,
  query: Closed({ format: Type.Optional(ArchiveFormat) }),
  answers: {
    200: { description: 'The archive', bytes: true },
    206: { description: 'The range that was asked for', bytes: true },
    304: { description: 'It is what `If-None-Match` names' },
  },
  errors: [...readErrors, 'range_not_satisfiable'],
})

export const requestBackupDownload = operation({
  id: 'requestBackupDownload',
  method: 'POST',
  path: `${one}/download`,
  tag,
  summary: 'Get a link to download a backup',
  description: 'For a browser or a tool that has no token. Good for 15 minutes, and dead when the token is revoked.',
  scope: 'backups:read',
  params: BackupParams,
  body: Closed({ format: Type.Optional(ArchiveFormat) }),
  bodyExample: { format: 'tar.zst' },
  answers: {
    200: {
      description: 'The link',
      schema: DownloadLocation,
      example: {
        url: 'https://keeper.example.org/v1/game/backup-downloads/eyJhbGciOiJIUzI1NiJ9.e30.c2ln',
        expiresAt: '2026-11-15T00:15:00.000Z',
      },
    },
  },
  errors: [...bodyErrors, 'backup_not_ready'],
})

export const browseBackup = operation({
  id: 'browseBackup',
  method: 'GET',
  path: `${one}/files`,
  tag,
  summary: 'List a directory inside a backup',
  scope: 'backups:read',
  params: BackupParams,
  query: Closed({ ...PageQuery, path: Directory }),
  answers: {
    200: {
      description: 'A page of entries, by name',
      schema: Page(BackupFile),
      example: { data: [fileExample], nextCursor: null },
    },
  },
  errors: [...readErrors, 'invalid_path'],
})

export const readBackupFile = operation({
  id: 'readBackupFile',
  method: 'GET',
  path: `${one}/files/content`,
  tag,
  summary: 'Read one file inside a backup',
  scope: 'backups:read',
  params: BackupParams,
  query: Closed({ path: Path }),
  answers: {
    200: { description: 'The whole file', bytes: true },
    206: { description: 'The range that was asked for', bytes: true },
    304: { description: 'It is what `If-None-Match` names' },
  },
  errors: [...readErrors, 'invalid_path', 'range_not_satisfiable'],
})

export const listFileVersions = operation({
  id: 'listFileVersions',
  method: 'GET',
  path: '/files/{serverId}/versions',
  tag,
  summary: 'List the versions of a file that backups hold',
  description: 'Newest first.',
  scope: 'backups:read',
  params,
  query: Closed({ path: Path }),
  answers: {
    200: {
      description: 'The versions',
      schema: Type.Object({ data: Type.Array(FileVersion) }),
      example: {
        data: [
          {
            backupId: example.id,
            backupCreatedAt: at,
            path: '/world/level.dat',
            kind: 'file',
            sizeBytes: 2048,
            modifiedAt: at,
            version: '4f9c1d7e0a5b3c8f',
          },
        ],
      },
    },
  },
  errors: ['invalid_path', 'agent_unreachable'],
})

export const compareBackups = operation({
  id: 'compareBackups',
  method: 'GET',
  path: '/backups/{serverId}/compare',
  tag,
  summary: 'List what changed between two backups, or since a backup',
  description: 'In order of path. Without `to`, the backup is compared with the files as they are now.',
  scope: 'backups:read',
  params,
  query: Closed({ ...PageQuery, from: Id, to: Type.Optional(Id) }),
  answers: {
    200: {
      description: 'A page of changes',
      schema: Page(BackupChange),
      example: {
        data: [{ path: '/world/level.dat', kind: 'file', change: 'changed', fromBytes: 2048, toBytes: 2051 }],
        nextCursor: null,
      },
    },
  },
  errors: readErrors,
})

export const recoverBackups = operation({
  id: 'recoverBackups',
  method: 'POST',
  path: '/backups/recover',
  tag,
  summary: 'Rebuild the list of backups from the store alone',
  description:
    'For the day when the database is gone: every backup in the store is taken back into the list, and a server that is ' +
    'unknown is made again, without its files, to restore into. Needs a token for all servers, with `servers:write` too. Safe to repeat.',
  scope: 'backups:write',
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
  verifyBackup,
  downloadBackup,
  requestBackupDownload,
  browseBackup,
  readBackupFile,
  listFileVersions,
  compareBackups,
  recoverBackups,
] as const
