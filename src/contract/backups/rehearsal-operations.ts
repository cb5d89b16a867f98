import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { BackupParams, ONE_BACKUP, startedJob } from './backups.ts'
import { RehearsalLog, RehearsalRequest } from './rehearsals.ts'

export const rehearseBackup = operation({
  id: 'rehearseBackup',
  method: 'POST',
  path: `${ONE_BACKUP}/rehearse`,
  tag: 'Backups',
  summary: 'Start the game from a backup, beside its server',
  description:
    'Restores the backup into a scratch place, starts the game from there with no network but its own loopback, waits until ' +
    'it is up, and stops it. The server itself is not touched. Sets `rehearsedAt` when the game came up; `rehearsal` says how ' +
    'the last one ended. The job completes either way: its result has the `outcome`. One at a time on a machine. ' +
    '`isolation_missing` where there is no bubblewrap, `disk_full` where there is no room for the files of the backup.',
  scope: 'backups:write',
  bound: BOUNDS.job,
  params: BackupParams,
  body: RehearsalRequest,
  bodyExample: { timeoutSeconds: 120 },
  answers: startedJob('rehearse'),
  errors: [
    ...(['too_large', 'unsupported_media_type', 'idempotency_conflict'] as const),
    'backup_not_ready',
    'backup_damaged',
    'server_busy',
  ],
})

export const readRehearsal = operation({
  id: 'readRehearsal',
  method: 'GET',
  path: `${ONE_BACKUP}/rehearsal`,
  tag: 'Backups',
  summary: 'Read how the last rehearsal of a backup ended, with its log',
  description: '`not_found` where it had none.',
  scope: 'backups:read',
  bound: BOUNDS.rows,
  params: BackupParams,
  answers: {
    200: {
      description: 'The rehearsal',
      schema: RehearsalLog,
      example: {
        ...{ outcome: 'passed', at: '2026-11-15T05:00:20.000Z', reason: null },
        log: ['Started.', 'Done (2.1s)! For help, type "help"', 'Ended with exit code 0.'],
      },
    },
  },
  errors: [],
})

export const REHEARSAL_OPERATIONS = [rehearseBackup, readRehearsal] as const
