// Every operation of the contract, in the order in which the documentation shows them.
import * as activity from './activity.ts'
import { BACKUP_CONTENT_OPERATIONS } from './backup-contents.ts'
import { BACKUP_PLAN_OPERATIONS } from './backup-plans.ts'
import { BACKUP_OPERATIONS } from './backups.ts'
import * as gameConsole from './console.ts'
import { FILE_OPERATIONS } from './files.ts'
import * as jobs from './jobs.ts'
import type { Operation } from './operation.ts'
import { powerServer } from './power-operations.ts'
import * as servers from './servers.ts'
import { SUBDOMAIN_OPERATIONS } from './subdomains.ts'
import { TEMPLATE_OPERATIONS } from './templates.ts'
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
  gameConsole.readConsole,
  gameConsole.sendCommand,
  ...BACKUP_OPERATIONS,
  ...BACKUP_CONTENT_OPERATIONS,
  ...BACKUP_PLAN_OPERATIONS,
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
]
