// Looking into backups: their files, the versions of a file, what changed, what one would hold, and download links.
import type { Agent } from '../../contract/agent.ts'
import type { BackupChange, BackupFile, FileVersion } from '../../contract/backups/backup-contents.ts'
import type { BackupPreview } from '../../contract/backups/backup-preview.ts'
import type { ArchiveFormat, DownloadLocation } from '../../contract/files/files.ts'
import { BASE_PATH } from '../../contract/operation.ts'
import type { Page } from '../../contract/schema.ts'
import type { SignedLinks } from '../../http/signed-links.ts'
import { iso } from '../../kit/time.ts'
import type { Activity } from '../activity/service.ts'
import type { BackupRow, Db, ServerRow } from '../db/tables.ts'
import { transact } from '../db/transact.ts'
import type { Actor } from '../http/actor.ts'
import { grantOf, LINK_LIFE_MS, linkEnd } from '../http/link-grant.ts'
import { type Cursors, pageOfWhole, pageRequest } from '../http/paging.ts'
import { requireServerFiles } from '../servers/service.ts'
import { noSuchBackup, requireCompleted, requireShort } from './present.ts'
import * as store from './store.ts'

const FORMAT_DEFAULT: ArchiveFormat = 'tar.zst'

interface PageQuery {
  limit?: number
  cursor?: string
}

export interface Contents {
  browse(
    actor: Actor,
    serverId: string,
    backupId: string,
    query: PageQuery & { path?: string },
  ): Promise<Page<BackupFile>>
  versions(actor: Actor, serverId: string, query: { path: string } & PageQuery): Promise<Page<FileVersion>>
  compare(
    actor: Actor,
    serverId: string,
    query: PageQuery & { from: string; to?: string },
    signal: AbortSignal,
  ): Promise<Page<BackupChange>>
  /** Of the files as they are now. Ends with the signal. */
  preview(actor: Actor, serverId: string, request: { ignored?: string }, signal: AbortSignal): Promise<BackupPreview>
  requestDownload(
    actor: Actor,
    serverId: string,
    baseUrl: string,
    backupId: string,
    format?: ArchiveFormat,
  ): Promise<DownloadLocation>
  /** A link for a request that is already here and goes to the agent in the caller's name. */
  linkFor(
    actor: Actor,
    serverId: string,
    backupId: string,
    what: { path: string } | { format?: ArchiveFormat },
  ): Promise<string>
}

export function createContents(deps: {
  db: Db
  agent: Pick<Agent, 'backups'>
  games: { ignoredBy(row: ServerRow): Promise<string> }
  activity: Activity
  links: SignedLinks
  cursors: Cursors
  clock: { now(): number }
}): Contents {
  const { db, agent, games, activity, links, cursors, clock } = deps

  async function requireReadable(actor: Actor, serverId: string, backupId: string): Promise<BackupRow> {
    await requireServerFiles(db, actor, serverId)
    const row = await store.findBackup(db, serverId, backupId)
    if (!row) throw noSuchBackup()
    return requireCompleted(row)
  }

  function sign(actor: Actor, row: BackupRow, what: { path: string } | { format?: ArchiveFormat }): Promise<string> {
    const detail = {
      backupId: row.id,
      name: row.name.replace(/[/\\:]/g, '-'),
      createdAt: row.created_at,
      ...('path' in what ? { path: what.path } : { format: what.format ?? FORMAT_DEFAULT }),
    }
    return links.sign('download-backup', grantOf(actor, row.server_id, detail), LINK_LIFE_MS)
  }

  /** Who takes a whole server's files away is worth an entry. */
  async function recordDownload<T>(actor: Actor, row: BackupRow, format: ArchiveFormat, answer: T): Promise<T> {
    return transact(db, actor, async (trx) => {
      const properties = { backupId: row.id, name: row.name, format }
      await activity.record(trx, actor, 'backup.download_started', row.server_id, properties)
      return answer
    })
  }

  return {
    async browse(actor, serverId, backupId, query) {
      await requireReadable(actor, serverId, backupId)
      const { path = '/' } = query
      const listName = `backup files ${backupId} ${path}`
      const request = pageRequest(cursors, listName, query)
      const after = request.after ? String(request.after[0]) : null
      const { entries, next } = await agent.backups.browse({ serverId, backupId, path, limit: request.limit, after })
      const data = entries.map(({ target, ...entry }) => ({ ...entry, symlinkTarget: target }))
      return { data, nextCursor: next === null ? null : cursors.encode(listName, [next]) }
    },

    async versions(actor, serverId, query) {
      const { path } = query
      await requireServerFiles(db, actor, serverId)
      const found = await agent.backups.versions({ serverId, path })
      const known = new Set((await store.completedOf(db, serverId)).map((row) => row.id))
      const data = found
        .filter(({ backupId }) => known.has(backupId))
        .map(({ backupId, createdAt, kind, sizeBytes, modifiedAt, version, path: at }) => {
          return {
            backupId,
            backupCreatedAt: new Date(createdAt).toISOString(),
            path: at,
            kind,
            sizeBytes,
            modifiedAt,
            version,
          }
        })
      return pageOfWhole(cursors, `versions ${serverId} ${path}`, query, data, ({ backupId }) => backupId)
    },

    async compare(actor, serverId, query, signal) {
      const { from, to = null } = query
      for (const backupId of to === null ? [from] : [from, to]) await requireReadable(actor, serverId, backupId)
      const listName = `changes ${serverId} ${from} ${to}`
      const request = pageRequest(cursors, listName, query)
      const after = request.after ? String(request.after[0]) : null
      const { changes, next } = await agent.backups.compare({ serverId, from, to, limit: request.limit, after }, signal)
      return { data: changes, nextCursor: next === null ? null : cursors.encode(listName, [next]) }
    },

    async preview(actor, serverId, { ignored = '' }, signal) {
      const server = await requireServerFiles(db, actor, serverId)
      requireShort(ignored)
      const ignoredByTemplate = await games.ignoredBy(server)
      return await agent.backups.preview({ serverId, ignored, ignoredByTemplate }, signal)
    },

    async requestDownload(actor, serverId, baseUrl, backupId, format = FORMAT_DEFAULT) {
      const row = await requireReadable(actor, serverId, backupId)
      const link = await sign(actor, row, { format })
      return recordDownload(actor, row, format, {
        url: `${baseUrl}${BASE_PATH}/backup-downloads/${link}`,
        expiresAt: iso(linkEnd(actor, clock.now())),
      })
    },

    async linkFor(actor, serverId, backupId, what) {
      const row = await requireReadable(actor, serverId, backupId)
      const link = await sign(actor, row, what)
      return 'path' in what ? link : recordDownload(actor, row, what.format ?? FORMAT_DEFAULT, link)
    },
  }
}
