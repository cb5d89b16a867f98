// The part of the Agent port that deals with backups: what the store holds, and the work on it. Bytes never cross it:
// downloads and single files flow over the agent's own HTTP routes.
import type { FileKind } from './agent-files.ts'

export interface AgentBackups {
  /**
   * Every finished backup that the store holds, of one server or of all: enough to rebuild the database's list.
   * `damage` is why a manifest cannot be read. Its `backup` is null then, unless only a part of it is damaged, which only
   * a thorough look at every entry finds. That also finds blocks that the store does not have, by the names and sizes of
   * packs; none is read. Where the off-site store may have them and cannot be reached, they are not `damage`.
   */
  list(request: { serverId: string | null; isThorough?: boolean }): Promise<StoredBackup[]>
  /**
   * Asks the off-site store for the manifest of a backup that is not listed, or listed as damaged, and puts it in place. Null
   * where there is no off-site store, or it does not have it either. Fails with `offsite_unreachable`.
   */
  heal(request: { serverId: string; backupId: string }): Promise<StoredBackup | null>
  /** Durable once it answers; the space comes back with the next `backups.reclaim`. Must be idempotent. */
  remove(request: { serverId: string; backupId: string }): Promise<void>
  /** Keeps with the backup whether it is locked, for the day when the database is gone. Durable once it answers. */
  setLock(request: { serverId: string; backupId: string; isLocked: boolean }): Promise<void>
  /** Fails with `not_found` for the first path that the backup does not hold, with `invalid_path` for what is none. */
  requirePaths(request: { serverId: string; backupId: string; paths: string[] }): Promise<void>
  /** What a directory in the backup holds, by name, after the name `after`. */
  browse(request: {
    serverId: string
    backupId: string
    path: string
    limit: number
    after: string | null
  }): Promise<{ entries: BackupEntry[]; next: string | null }>
  /** Which backups hold the path, newest first. Equal `version` means equal content. */
  versions(request: { serverId: string; path: string }): Promise<FileVersion[]>
  /** What changed from one backup to another, or to the tree as it is (`to: null`), in order of path, after `after`. Ends with the signal. */
  compare(
    request: { serverId: string; from: string; to: string | null; limit: number; after: string | null },
    signal: AbortSignal,
  ): Promise<{ changes: BackupChange[]; next: string | null }>
  /** Counts what a backup with these patterns would hold, for a few seconds at most. Ends with the signal. */
  preview(request: { serverId: string } & PatternChoice, signal: AbortSignal): Promise<BackupTally>
  /** What has become of a job's restore: null where it has changed nothing, or `forgetRestore` was called. */
  readRestore(request: { serverId: string; jobId: string }): Promise<RestoreOutcome | null>
  /** Control has recorded how it ended. Must be idempotent; changes nothing of one that has not ended. */
  forgetRestore(request: { serverId: string; jobId: string }): Promise<void>
  /** Jobs whose restores into this server have ended, and were not forgotten. */
  endedRestores(request: { serverId: string }): Promise<string[]>
  /** The restore into this server that has stopped in the middle, if one has. */
  stoppedRestore(request: { serverId: string }): Promise<StoppedRestore | null>
  store(): Promise<StoreState>
}

/** Which patterns count for a backup. */
export interface PatternChoice {
  /** Empty: the server's own `.backupignore` counts. */
  ignored: string
  /** Counts besides, and before: the other patterns can take back what it leaves out. */
  ignoredByTemplate?: string
}

export interface BackupTally {
  /** The patterns that were used, whoever gave them. */
  ignored: string
  kept: FileTally
  leftOut: FileTally
  /** False: there is at least this much of both. */
  isComplete: boolean
}

export interface FileTally {
  fileCount: number
  sizeBytes: number
}

export type Consistency = 'offline' | 'quiesced' | 'live'

export interface BackupReport {
  backupId: string
  serverId: string
  name: string
  /** What its server was called when it was made. Backups made before this was kept do not say. */
  serverName?: string
  /** Milliseconds since the epoch, as all times here. */
  createdAt: number
  startedAt: number
  completedAt: number
  /** The patterns that were used, whoever gave them. */
  ignored: string
  /** From `list`, as it is by what the store knows; elsewhere as it was when the backup was made. */
  isLocked: boolean
  consistency: Consistency
  /** How long a game held its world still for it; null, or absent in backups of earlier versions, where none did. */
  heldMs?: number | null
  fileCount: number
  directoryCount: number
  symlinkCount: number
  sizeBytes: number
  /** What it added to the store. */
  storedBytes: number
  /** The first of them; `warningCount` counts all. */
  warnings: string[]
  warningCount: number
  /** Of the manifest, and through it of everything in the backup. */
  checksum: string
}

export interface StoredBackup {
  serverId: string
  backupId: string
  backup: BackupReport | null
  damage: string | null
  /** `damage` is of blocks alone: the manifest itself is sound. */
  areBlocksMissing?: boolean
}

export interface BackupEntry {
  name: string
  path: string
  kind: Exclude<FileKind, 'other'>
  sizeBytes: number
  /** RFC 3339, UTC, milliseconds. */
  modifiedAt: string
  /** Four octal digits. */
  mode: string
  /** Of a symlink. */
  target: string | null
}

export interface FileVersion extends BackupEntry {
  backupId: string
  createdAt: number
  version: string
}

export interface BackupChange {
  path: string
  kind: Exclude<FileKind, 'other'>
  change: 'added' | 'removed' | 'changed'
  fromBytes: number | null
  toBytes: number | null
}

export interface StoreState {
  packCount: number
  blockCount: number
  packBytes: number
  /** Of these, the ones that are only in the off-site store. */
  awayPackCount: number
  awayPackBytes: number
  isEncrypted: boolean
  /** Blobs that were found damaged when the store was opened or since. */
  damagedBlobs: { blob: string; what: string }[]
}

/** Work for `AgentTasks`. The server of the task is the one whose files or backup it is about. */
export type BackupsWork =
  /** Repeating it for a backup that is there answers that backup. */
  | (PatternChoice & {
      kind: 'backups.create'
      backupId: string
      name: string
      serverName?: string
      createdAt: number
      isLocked: boolean
    })
  /** The task's server is restored into; the backup may be another's. May end as `restore_unfinished`. */
  | {
      kind: 'backups.restore'
      /** The job that wants it. Repeating it for a job whose restore has ended answers how, and changes nothing. */
      jobId: string
      backupId: string
      sourceServerId: string
      mode: 'replace' | 'merge'
      /** null: everything. */
      paths: string[] | null
      /** Of what was there just before. Where there is none, nothing that the restore displaces is freed for the quota. */
      safetyBackupId: string | null
    }
  /** For a restore that has stopped; may end as `restore_unfinished` again. */
  | { kind: 'backups.finishRestore'; jobId: string; direction: 'forward' | 'back' }
  /** `isOffsite`: what the off-site store has of the backup is read and checked as well. */
  | { kind: 'backups.verify'; backupId: string; isOffsite?: boolean }
  /** `share` of the store's bytes, going on where the last one ended; 1 for all of it. */
  | { kind: 'backups.scrub'; share: number }
  /** Waits for backups under way, and lets none begin. */
  | { kind: 'backups.reclaim' }

export interface RestoreReport {
  filesRestored: number
  /** Were already as in the backup, and were not touched. */
  filesKept: number
  bytesRestored: number
  /** How many things went to the trash. */
  displaced: number
}

/** A restore that has stopped in the middle, after it had begun to change files. The server is busy until it is finished. */
export interface StoppedRestore {
  jobId: string
  backupId: string
  since: number
  /** Where it stopped, if at one place. */
  path: string | null
  reason: string
}

export interface RestoreOutcome {
  /** `forward`, `back`: under way. `done`, `undone`: all of it. */
  phase: 'forward' | 'back' | 'stopped' | 'done' | 'undone'
  report: RestoreReport | null
}

export interface DamageReport {
  /** null where a manifest, an index or a pack's table is damaged. */
  blockId: string | null
  blob: string
  what: string
  touches: { serverId: string; backupId: string; path: string }[]
  /** It is damaged in the off-site store alone: what is on the disk is sound. */
  isOffsite?: boolean
}

export interface VerifyReport {
  blocksChecked: number
  bytesChecked: number
  /** Empty: every byte is what was written. */
  damage: DamageReport[]
  /** Blobs that were damaged or lost, and are sound again: the off-site store had them. */
  healed: string[]
}

export interface ScrubReport extends VerifyReport {
  isRoundDone: boolean
}

export interface ReclaimReport {
  packsBefore: number
  packsDeleted: number
  packsRewritten: number
  freedBytes: number
  storedBytes: number
}

export interface BackupsResults {
  'backups.create': BackupReport
  'backups.restore': RestoreReport
  /** `done` or `undone`. */
  'backups.finishRestore': RestoreOutcome
  'backups.verify': VerifyReport
  'backups.scrub': ScrubReport
  'backups.reclaim': ReclaimReport
}
