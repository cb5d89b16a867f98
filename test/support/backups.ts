// Servers with files, and backups of them, through the front door.
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Backup } from '../../src/contract/backups/backups.ts'
import type { Job } from '../../src/contract/jobs.ts'
import type { TestService } from './service.ts'
import { until } from './until.ts'

export type World = ReturnType<typeof createWorld>

/** Bytes a second, for `GAMEKEEPER_BACKUP_RATE`. */
export const SLOWEST_RATE = '65536'

export function createWorld(service: TestService) {
  const folder = (serverId: string) => join(service.dataDir, 'servers', serverId, 'files')

  async function write(serverId: string, files: Record<string, string | Buffer>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder(serverId), path)), { recursive: true })
      await writeFile(join(folder(serverId), path), content)
    }
  }

  async function ended(serverId: string, backupId: string): Promise<Backup> {
    return until(async () => {
      const { body } = await service.call('GET', `/backups/${serverId}/${backupId}`)
      return (body.status === 'completed' || body.status === 'failed') && body
    })
  }

  async function jobEnded(serverId: string, jobId: string): Promise<Job> {
    return until(async () => {
      const { body } = await service.call('GET', `/servers/${serverId}/jobs/${jobId}`)
      return ['completed', 'failed', 'cancelled'].includes(body.status) && body
    })
  }

  return {
    folder,
    write,
    ended,
    jobEnded,
    async server(files: Record<string, string | Buffer>, body: object = {}): Promise<string> {
      const { id } = await service.createServer(body)
      await write(id, files)
      return id
    },
    /**
     * No backup of megabytes ends while `work` is under way, nor does a restore that makes one first: they are read as slowly as
     * can be set. The service is restarted before and after.
     */
    async slowly<T>(work: () => Promise<T>): Promise<T> {
      await service.restart({ GAMEKEEPER_BACKUP_RATE: SLOWEST_RATE })
      try {
        return await work()
      } finally {
        await service.restart({ GAMEKEEPER_BACKUP_RATE: '' })
      }
    },
    /** Asked for one after the other, without waiting for any. */
    async start(serverId: string, count: number): Promise<string[]> {
      const ids: string[] = []
      for (let i = 0; i < count; i++) ids.push((await service.call('POST', `/backups/${serverId}`, {})).body.id)
      return ids
    },
    async backup(serverId: string, body: object = {}): Promise<Backup> {
      const made = await service.call('POST', `/backups/${serverId}`, { body })
      assert.equal(made.status, 202, made.text)
      const backup = await ended(serverId, made.body.id)
      assert.equal(backup.status, 'completed', JSON.stringify(backup.error))
      return backup
    },
    async restore(serverId: string, backupId: string, body: object = {}): Promise<Job> {
      const reply = await service.call('POST', `/backups/${serverId}/${backupId}/restore`, {
        body: { mode: 'replace', ...body },
      })
      assert.equal(reply.status, 202, reply.text)
      const [, , , , target = ''] = (reply.headers.get('location') ?? '').split('/')
      return jobEnded(target, reply.body.id)
    },
    async names(serverId: string, backupId: string, path = '/'): Promise<string[]> {
      const { body } = await service.call(
        'GET',
        `/backups/${serverId}/${backupId}/files?path=${encodeURIComponent(path)}`,
      )
      return body.data.map((entry: { name: string }) => entry.name)
    },
    /** Newest first, without the creation of the server. */
    async events(serverId: string): Promise<string[]> {
      const { body } = await service.call('GET', `/servers/${serverId}/activity?limit=100`)
      return body.data
        .map((entry: { event: string }) => entry.event)
        .filter((event: string) => event !== 'server.created')
    },
  }
}
