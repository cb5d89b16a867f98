// Every operation of the contract, in the order in which the documentation shows them.
import * as activity from './activity.ts'
import { BACKUP_CONTENT_OPERATIONS } from './backups/backup-contents.ts'
import { BACKUP_PLAN_OPERATIONS } from './backups/backup-plans.ts'
import { previewBackup } from './backups/backup-preview.ts'
import { BACKUP_OPERATIONS } from './backups/backups.ts'
import { OFFSITE_OPERATIONS } from './backups/offsite.ts'
import { REHEARSAL_OPERATIONS } from './backups/rehearsal-operations.ts'
import { readDisks } from './disks.ts'
import { FILE_OPERATIONS } from './files/files.ts'
import * as gameConsole from './games/console.ts'
import { installServer } from './games/install-operations.ts'
import { readPlayers } from './games/players.ts'
import { powerServer } from './games/power-operations.ts'
import { readStats } from './games/stats.ts'
import { TEMPLATE_OPERATIONS } from './games/templates.ts'
import { INVITATION_OPERATIONS } from './invitations.ts'
import * as jobs from './jobs.ts'
import type { Operation } from './operation.ts'
import * as servers from './servers.ts'
import { SESSION_OPERATIONS } from './sessions.ts'
import { SUBDOMAIN_OPERATIONS } from './subdomains.ts'
import * as tokens from './tokens.ts'

export const OPERATIONS: readonly Operation[] = [
  servers.createServer,
  servers.listServers,
  servers.readServer,
  servers.changeServer,
  servers.deleteServer,
  servers.planDeletion,
  servers.undeleteServer,
  powerServer,
  installServer,
  gameConsole.readConsole,
  gameConsole.sendCommand,
  readPlayers,
  readStats,
  ...BACKUP_OPERATIONS,
  previewBackup,
  ...REHEARSAL_OPERATIONS,
  ...BACKUP_CONTENT_OPERATIONS,
  ...BACKUP_PLAN_OPERATIONS,
  ...OFFSITE_OPERATIONS,
  readDisks,
  ...FILE_OPERATIONS,
  ...SUBDOMAIN_OPERATIONS,
  ...TEMPLATE_OPERATIONS,
  activity.listActivity,
  activity.verifyActivity,
  activity.listAllActivity,
  activity.verifyAllActivity,
  jobs.listJobs,
  jobs.readJob,
  jobs.cancelJob,
  tokens.createToken,
  tokens.listTokens,
  tokens.readOwnToken,
  tokens.revokeToken,
  ...INVITATION_OPERATIONS,
  ...SESSION_OPERATIONS,
]
