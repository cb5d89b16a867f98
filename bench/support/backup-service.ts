// The service as a process of its own, and its backups driven over HTTP as a client does.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Backup } from '../../src/contract/backups.ts'
import { type Client, createClient } from '../../src/sdk/client.ts'
import { readEvents } from '../../src/sdk/events.ts'
import { type ServiceProcess, spawnService } from '../../test/support/process.ts'

const POLL_MS = 10

export interface BackupService {
  service: ServiceProcess
  client: Client
  filesOf(serverId: string): string
  /** From the request until the stream of the backup says that it has completed. */
  backUp(serverId: string): Promise<{ backup: Backup; seconds: number }>
  /** From the request until its job has completed. */
  restore(serverId: string, backupId: string, targetServerId?: string): Promise<number>
  stop(): Promise<unknown>
}

const token = `gk_admin_${randomBytes(32).toString('hex')}`

export async function startBackupService(dataDir: string): Promise<BackupService> {
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' }
  const service = await spawnService(env)
  const client = createClient({ baseUrl: service.url, token })
  return {
    service,
    client,
    filesOf: (serverId) => join(dataDir, 'servers', serverId, 'files'),
    async backUp(serverId) {
      const begun = performance.now()
      const { id } = await client.backups.create(serverId)
      const backup = await followed(`${service.url}/v1/game/backups/${serverId}/${id}`)
      return { backup, seconds: (performance.now() - begun) / 1000 }
    },
    async restore(serverId, backupId, targetServerId = serverId) {
      const begun = performance.now()
      const job = await client.backups.restore(serverId, backupId, { targetServerId, safetyBackup: false })
      for (;;) {
        const { status, error } = await client.jobs.read(targetServerId, job.id)
        if (status === 'completed') return (performance.now() - begun) / 1000
        if (status === 'failed' || status === 'cancelled') throw new Error(`not restored: ${JSON.stringify(error)}`)
        await delay(POLL_MS)
      }
    },
    stop: () => service.kill('SIGTERM'),
  }
}

async function followed(url: string): Promise<Backup> {
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
  const { body } = await fetch(url, { headers })
  if (!body) throw new Error('no stream')
  for await (const { data } of readEvents(body)) {
    const backup = JSON.parse(data) as Backup
    if (backup.status === 'failed') throw new Error(`the backup failed: ${JSON.stringify(backup.error)}`)
    if (backup.status === 'completed') return backup
  }
  throw new Error('the stream ended before the backup did')
}
