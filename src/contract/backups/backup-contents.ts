// What is inside a backup: listed, read, compared, downloaded.

import { ArchiveFormat, DownloadLocation } from '../files/files.ts'
import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import {
  Bytes,
  Closed,
  Directory,
  Id,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  Path,
  ServerParams,
  type Static,
  Timestamp,
  Type,
} from '../schema.ts'
import { BackupParams } from './backups.ts'

const EntryKind = OneOf(['file', 'directory', 'symlink'])

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

const at = '2026-11-15T00:00:00.000Z'
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
const one = '/backups/{serverId}/{backupId}'
const bodyErrors = ['too_large', 'unsupported_media_type', 'idempotency_conflict'] as const
const readErrors = ['backup_not_ready', 'backup_damaged', 'agent_unreachable'] as const
/** Only what reads packs needs the off-site store: all else of a backup is on the disk. */
const contentErrors = [...readErrors, 'offsite_unreachable', 'precondition_failed', 'range_not_satisfiable'] as const

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
  bound: BOUNDS.bytes,
  params: BackupParams,
  query: Closed({ format: Type.Optional(ArchiveFormat) }),
  answers: {
    200: { description: 'The archive', bytes: true },
    206: { description: 'The range that was asked for', bytes: true },
    304: { description: 'It is what `If-None-Match` names' },
  },
  errors: contentErrors,
})

export const requestBackupDownload = operation({
  id: 'requestBackupDownload',
  method: 'POST',
  path: `${one}/download`,
  tag,
  summary: 'Get a link to download a backup',
  description: 'For a browser or a tool that has no token. Good for 15 minutes, and dead when the token is revoked.',
  scope: 'backups:read',
  bound: BOUNDS.body,
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
  bound: BOUNDS.manifest,
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
  bound: BOUNDS.bytes,
  params: BackupParams,
  query: Closed({ path: Path }),
  answers: {
    200: { description: 'The whole file', bytes: true },
    206: { description: 'The range that was asked for', bytes: true },
    304: { description: 'It is what `If-None-Match` names' },
  },
  errors: [...contentErrors, 'invalid_path'],
})

export const listFileVersions = operation({
  id: 'listFileVersions',
  method: 'GET',
  path: '/files/{serverId}/versions',
  tag,
  summary: 'List the versions of a file that backups hold',
  description: 'Newest first.',
  scope: 'backups:read',
  bound: BOUNDS.backups,
  params,
  query: Closed({ ...PageQuery, path: Path }),
  answers: {
    200: {
      description: 'A page of versions',
      schema: Page(FileVersion),
      example: {
        data: [
          {
            backupId: 'bkp_01k9zq6m3t8v5w2x7y4c1b6d9e',
            backupCreatedAt: at,
            path: '/world/level.dat',
            kind: 'file',
            sizeBytes: 2048,
            modifiedAt: at,
            version: '4f9c1d7e0a5b3c8f',
          },
        ],
        nextCursor: null,
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
  bound: BOUNDS.manifest,
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

export const BACKUP_CONTENT_OPERATIONS = [
  downloadBackup,
  requestBackupDownload,
  browseBackup,
  readBackupFile,
  listFileVersions,
  compareBackups,
] as const
