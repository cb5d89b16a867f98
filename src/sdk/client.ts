import { createActivityApi } from './activity.ts'
import { createBackupsApi } from './backups.ts'
import { createDisksApi } from './disks.ts'
import { createFilesApi } from './files.ts'
import { createConsoleApi, createPlayersApi, createPowerApi, createStatsApi } from './games.ts'
import { createJobsApi } from './jobs.ts'
import { createOffsiteApi } from './offsite.ts'
import { createServersApi } from './servers.ts'
import { createServiceApi } from './service.ts'
import { createInvitationsApi, createSessionApi, createSessionsApi } from './sessions.ts'
import { createDnsApi, createSubdomainsApi } from './subdomains.ts'
import { createTemplatesApi } from './templates.ts'
import { createTokensApi } from './tokens.ts'
import { type ClientOptions, createTransport } from './transport.ts'

export type Client = ReturnType<typeof createClient>

/** A client of one service with one token, or in a browser with the session that it keeps. It keeps no state, so it may be shared and needs no closing. */
export function createClient(options: ClientOptions) {
  const transport = createTransport(options)
  return {
    servers: createServersApi(transport),
    power: createPowerApi(transport),
    console: createConsoleApi(transport),
    stats: createStatsApi(transport),
    players: createPlayersApi(transport),
    backups: createBackupsApi(transport),
    offsite: createOffsiteApi(transport),
    disks: createDisksApi(transport),
    files: createFilesApi(transport),
    subdomains: createSubdomainsApi(transport),
    dns: createDnsApi(transport),
    activity: createActivityApi(transport),
    jobs: createJobsApi(transport),
    templates: createTemplatesApi(transport),
    tokens: createTokensApi(transport),
    invitations: createInvitationsApi(transport),
    session: createSessionApi(transport),
    sessions: createSessionsApi(transport),
    service: createServiceApi(transport),
    /** Any operation of the contract, by itself. */
    call: transport.call,
    /** As `call`, with the answer as it comes. */
    open: transport.open,
  }
}
