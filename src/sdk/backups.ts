import * as inside from '../contract/backups/backup-contents.ts'
import * as plans from '../contract/backups/backup-plans.ts'
import { previewBackup } from '../contract/backups/backup-preview.ts'
import * as backups from '../contract/backups/backups.ts'
import { type REHEARSAL_OPERATIONS, readRehearsal, rehearseBackup } from '../contract/backups/rehearsal-operations.ts'
import type { RehearsalRequest } from '../contract/backups/rehearsals.ts'
import type { Operation, QueryOf } from '../contract/operation.ts'
import { bytesOf } from './bytes.ts'
import { BackupError } from './errors.ts'
import type { FileContent } from './files.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import { STREAM, untilEnded } from './streams/wait-for-end.ts'
import type { Transport } from './transport.ts'

export type BackupQuery = QueryOf<typeof backups.listBackups>
export type BrowseQuery = QueryOf<typeof inside.browseBackup>
export type CompareQuery = QueryOf<typeof inside.compareBackups>
export type VersionQuery = QueryOf<typeof inside.listFileVersions>
export type ScheduleQuery = QueryOf<typeof plans.listSchedules>
export type BackupFormat = NonNullable<QueryOf<typeof inside.downloadBackup>['format']>

export interface BackupWaitOptions {
  onProgress?: (backup: backups.Backup) => void
  signal?: AbortSignal
}

export function createBackupsApi(transport: Transport) {
  const list = transport.method(
    backups.listBackups,
    (serverId: string, query: BackupQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  const versions = transport.method(
    inside.listFileVersions,
    (serverId: string, query: VersionQuery, options: CallOptions = {}) => ({ params: { serverId }, query, ...options }),
  )
  const schedules = transport.method(
    plans.listSchedules,
    (serverId: string, query: ScheduleQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  const browse = transport.method(
    inside.browseBackup,
    (serverId: string, backupId: string, query: BrowseQuery = {}, options: CallOptions = {}) => ({
      params: { serverId, backupId },
      query,
      ...options,
    }),
  )
  const compare = transport.method(
    inside.compareBackups,
    (serverId: string, query: CompareQuery, options: CallOptions = {}) => ({ params: { serverId }, query, ...options }),
  )
  /** For the operations that take a backup and nothing else. */
  const onOne = <O extends OneBackupOperation>(operation: O) =>
    transport.method(operation, (serverId: string, backupId: string, options: CallOptions = {}) => {
      return { params: { serverId, backupId }, ...options } as never
    })
  const read = onOne(backups.readBackup)

  return {
    create: transport.method(
      backups.createBackup,
      (serverId: string, body: backups.NewBackup = {}, options: CallOptions = {}) => ({
        params: { serverId },
        body,
        ...options,
      }),
    ),
    /** How many files one with these patterns would hold and leave out. Makes nothing. */
    preview: transport.method(previewBackup, (serverId: string, ignored?: string, options: CallOptions = {}) => ({
      params: { serverId },
      body: ignored === undefined ? {} : { ignored },
      ...options,
    })),
    /** One page, newest first. */
    list,
    all: (
      serverId: string,
      query: BackupQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<backups.Backup, void, undefined> =>
      itemsOf((pageQuery: BackupQuery) => list(serverId, pageQuery, options), query),
    read,
    /** Resolves with the backup once it has completed; rejects with `BackupError` when it failed. */
    async wait(serverId: string, backupId: string, options: BackupWaitOptions = {}): Promise<backups.Backup> {
      const params = { serverId, backupId }
      const backup = await untilEnded<backups.Backup>(
        {
          read: () => read(serverId, backupId, options.signal ? { signal: options.signal } : {}),
          open: (signal) => transport.open(backups.readBackup, { params, signal }, STREAM),
        },
        options,
      )
      if (backup.status !== 'completed') throw new BackupError(backup)
      return backup
    },
    /** Locking what is locked changes nothing. */
    lock: onOne(backups.lockBackup),
    unlock: onOne(backups.unlockBackup),
    /** Deletes it, or cancels it while it is queued or running. */
    delete: onOne(backups.deleteBackup),
    /** `offsite`: what the off-site store has of it as well. */
    verify: transport.method(
      backups.verifyBackup,
      (serverId: string, backupId: string, { offsite, ...options }: CallOptions & { offsite?: boolean } = {}) => ({
        params: { serverId, backupId },
        query: offsite === undefined ? {} : { offsite },
        ...options,
      }),
    ),
    /** Starts the game from it, beside its server; the result of the job says whether it came up. */
    rehearse: transport.method(
      rehearseBackup,
      (serverId: string, backupId: string, body: RehearsalRequest = {}, options: CallOptions = {}) => ({
        params: { serverId, backupId },
        body,
        ...options,
      }),
    ),
    /** How its last rehearsal ended, with the log. */
    rehearsal: onOne(readRehearsal),
    /** `mode` or `paths` says what to restore: nothing is replaced by leaving it out. */
    restore: transport.method(
      backups.restoreBackup,
      (serverId: string, backupId: string, body: backups.RestoreRequest, options: CallOptions = {}) => ({
        params: { serverId, backupId },
        body,
        ...options,
      }),
    ),

    /** Ends a restore that has stopped in the middle: `forward` to what the backup has, `back` to what was there before. */
    finishRestore: transport.method(
      backups.finishRestore,
      (serverId: string, direction: backups.FinishRequest['direction'], options: CallOptions = {}) => ({
        params: { serverId },
        body: { direction },
        ...options,
      }),
    ),

    /** The whole backup as an archive. */
    download: Object.assign(
      async (
        serverId: string,
        backupId: string,
        format: BackupFormat = 'tar.zst',
        options: CallOptions = {},
      ): Promise<FileContent> =>
        contentOf(
          await transport.open(
            inside.downloadBackup,
            { params: { serverId, backupId }, query: { format }, ...options },
            { accept: '*/*' },
          ),
        ),
      { operation: inside.downloadBackup },
    ),
    /** A link that downloads it without a token, for 15 minutes. */
    requestDownload: transport.method(
      inside.requestBackupDownload,
      (serverId: string, backupId: string, format: BackupFormat = 'tar.zst', options: CallOptions = {}) => ({
        params: { serverId, backupId },
        body: { format },
        ...options,
      }),
    ),
    /** One page of a directory inside the backup. */
    browse,
    browseAll: (
      serverId: string,
      backupId: string,
      query: BrowseQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<inside.BackupFile, void, undefined> =>
      itemsOf((pageQuery: BrowseQuery) => browse(serverId, backupId, pageQuery, options), query),
    readFile: Object.assign(
      async (serverId: string, backupId: string, path: string, options: CallOptions = {}): Promise<FileContent> =>
        contentOf(
          await transport.open(
            inside.readBackupFile,
            { params: { serverId, backupId }, query: { path }, ...options },
            { accept: '*/*' },
          ),
        ),
      { operation: inside.readBackupFile },
    ),
    /** One page of the versions of a file, newest first. */
    versions,
    allVersions: (
      serverId: string,
      query: VersionQuery,
      options: CallOptions = {},
    ): AsyncGenerator<inside.FileVersion, void, undefined> =>
      itemsOf((pageQuery: VersionQuery) => versions(serverId, pageQuery, options), query),
    /** One page of what changed from one backup to another, or to the files as they are. */
    compare,
    compareAll: (
      serverId: string,
      query: CompareQuery,
      options: CallOptions = {},
    ): AsyncGenerator<inside.BackupChange, void, undefined> =>
      itemsOf((pageQuery: CompareQuery) => compare(serverId, pageQuery, options), query),
    /** Rebuilds the list from the store alone. */
    recover: transport.method(backups.recoverBackups, (options: CallOptions = {}) => ({ ...options })),

    readRetention: transport.method(plans.readRetention, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),
    setRetention: transport.method(
      plans.setRetention,
      (serverId: string, body: plans.NewRetention, options: CallOptions = {}) => ({
        params: { serverId },
        body,
        ...options,
      }),
    ),
    /** With `dryRun` true it only says what would go; with false that is deleted. */
    applyRetention: transport.method(
      plans.applyRetention,
      (serverId: string, dryRun: boolean, options: CallOptions = {}) => ({
        params: { serverId },
        body: { dryRun },
        ...options,
      }),
    ),
    /** One page, oldest first. */
    schedules,
    allSchedules: (
      serverId: string,
      query: ScheduleQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<plans.Schedule, void, undefined> =>
      itemsOf((pageQuery: ScheduleQuery) => schedules(serverId, pageQuery, options), query),
    createSchedule: transport.method(
      plans.createSchedule,
      (serverId: string, body: plans.NewSchedule, options: CallOptions = {}) => ({
        params: { serverId },
        body,
        ...options,
      }),
    ),
    readSchedule: transport.method(
      plans.readSchedule,
      (serverId: string, scheduleId: string, options: CallOptions = {}) => ({
        params: { serverId, scheduleId },
        ...options,
      }),
    ),
    changeSchedule: transport.method(
      plans.changeSchedule,
      (serverId: string, scheduleId: string, body: plans.ScheduleChange, options: CallOptions = {}) => ({
        params: { serverId, scheduleId },
        body,
        ...options,
      }),
    ),
    deleteSchedule: transport.method(
      plans.deleteSchedule,
      (serverId: string, scheduleId: string, options: CallOptions = {}) => ({
        params: { serverId, scheduleId },
        ...options,
      }),
    ),
  }
}

type OneBackupOperation = Extract<
  (typeof backups.BACKUP_OPERATIONS | typeof REHEARSAL_OPERATIONS)[number],
  { id: 'readBackup' | 'lockBackup' | 'unlockBackup' | 'deleteBackup' | 'readRehearsal' }
> &
  Operation

function contentOf(response: Response): FileContent {
  const length = response.headers.get('content-length')
  return {
    bytes: bytesOf(response),
    sizeBytes: length === null ? null : Number(length),
    etag: response.headers.get('etag'),
  }
}
