// The service as a process of its own, and its backups driven over HTTP as a client does.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Backup } from '../../src/contract/backups/backups.ts'
import { type Client, createClient } from '../../src/sdk/client.ts'
import { type ServiceProcess, spawnService } from '../../test/support/process.ts'

export interface BackupService {
  service: ServiceProcess
  client: Client
  filesOf(serverId: string): string
  /** From the request until the stream of the backup says that it has completed. */
  backUp(serverId: string): Promise<{ backup: Backup; seconds: number }>
  /** From the request until the stream of its job says that it has completed. */
  restore(serverId: string, backupId: string, targetServerId?: string): Promise<number>
  stop(): Promise<unknown>
}

const token = `gk_admin_${randomBytes(32).toString('hex')}`

export async function startBackupService(
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<BackupService> {
  const own = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' }
  const service = await spawnService({ ...own, ...settings })
  const client = createClient({ baseUrl: service.url, token })
  return {
    service,
    client,
    filesOf: (serverId) => join(dataDir, 'servers', serverId, 'files'),
    async backUp(serverId) {
      const begun = performance.now()
      const { id } = await client.backups.create(serverId)
      const backup = await client.backups.wait(serverId, id)
      return { backup, seconds: (performance.now() - begun) / 1000 }
    },
    async restore(serverId, backupId, targetServerId = serverId) {
      const begun = performance.now()
      const job = await client.backups.restore(serverId, backupId, {
        mode: 'replace',
        targetServerId,
        safetyBackup: false,
      })
      await client.jobs.wait(targetServerId, job.id)
      return (performance.now() - begun) / 1000
    },
    stop: () => service.kill('SIGTERM'),
  }
}
