// What the store of backups has, compared with what the database knows: each learns from the other.
import type { Logger } from 'pino'
import type { AgentBackups, BackupReport, DamageReport, StoredBackup } from '../../contract/agent/agent-backups.ts'
import type { Recovery } from '../../contract/backups/backups.ts'
import { isFailure } from '../../contract/errors.ts'
import { isName } from '../../contract/schema.ts'
import { timeOfId } from '../../kit/ids.ts'
import type { Activity } from '../activity/service.ts'
import { lockServer } from '../db/lock-server.ts'
import type { BackupRow, Db, Trx } from '../db/tables.ts'
import { onCommit, transact } from '../db/transact.ts'
import { type Actor, requireAllServers, requireScope, SYSTEM } from '../http/actor.ts'
import type { Servers } from '../servers/service.ts'
import type { NoteDamage } from './damage-notes.ts'
import type { LockKeeper } from './locks.ts'
import type { OffsiteService } from './offsite/service.ts'
import { newBackupRow, reported } from './present.ts'
import * as store from './store.ts'

export interface Recovering {
  /** Compares both and puts right what it can. Servers that are unknown stay so. */
  compare(actor: Actor): Promise<Omit<Recovery, 'servers'>>
  /** The same, with every manifest read whole, and makes servers again that only the store knows. */
  recover(actor: Actor): Promise<Recovery>
}

export interface RecoveringDeps {
  db: Db
  agent: { backups: Pick<AgentBackups, 'list' | 'heal' | 'setLock'> }
  activity: Pick<Activity, 'record'>
  servers: Pick<Servers, 'adopt'>
  noteDamage: NoteDamage
  locks: Pick<LockKeeper, 'inTurn'>
  offsite: Pick<OffsiteService, 'firstState'>
  log: Logger
}

export function createRecovering(deps: RecoveringDeps): Recovering {
  const { db, agent, activity, servers, noteDamage, locks, offsite, log } = deps

  /** One that cannot be read is shown as failed: unseen, nobody could delete it, and no space would be given back. */
  async function adopt(actor: Actor, { serverId, backupId, backup, damage }: StoredBackup): Promise<boolean> {
    const createdAt = backup?.createdAt ?? timeOfId('bkp', backupId)
    if (createdAt === undefined) return false
    return transact(db, {}, async (trx) => {
      const server = await lockServer(trx, serverId)
      if (server?.status !== 'ready' || (await store.findRow(trx, backupId))) return false
      const row = newBackupRow(serverId, backup ? { name: backup.name, isLocked: backup.isLocked } : {}, createdAt)
      await store.insertBackup(trx, {
        ...row,
        ...(backup ? reported(backup, offsite.firstState) : UNREADABLE),
        id: backupId,
      })
      await activity.record(trx, actor, 'backup.adopted', serverId, { backupId, name: row.name })
      if (damage !== null) await noteDamage(trx, actor, [manifestDamage(serverId, backupId, damage)])
      return true
    })
  }

  /** Where the word that it had completed was lost. */
  async function revive(trx: Trx, row: BackupRow, backup: BackupReport): Promise<void> {
    const locked = row.locked === 1 || backup.isLocked ? 1 : 0
    await store.updateBackup(trx, row.id, { ...reported(backup, offsite.firstState), name: backup.name, locked })
    await activity.record(trx, SYSTEM, 'backup.adopted', row.server_id, { backupId: row.id, name: row.name })
  }

  async function markLost(trx: Trx, row: BackupRow): Promise<void> {
    const error = { code: 'backup_damaged', detail: 'The backup is no longer in the store.' }
    await store.updateBackup(trx, row.id, { status: 'failed', error: JSON.stringify(error), damage: null })
    await activity.record(trx, SYSTEM, 'backup.lost', row.server_id, { backupId: row.id, name: row.name })
    onCommit(trx, () => log.error({ backupId: row.id, serverId: row.server_id, error }, 'a backup was lost'))
  }

  /**
   * Where a crash came between the two, or one of them is an older copy, the lock counts: nothing is deleted in error. Both are
   * read again: whoever was changing them when they were compared has ended by then.
   */
  const agreeOnLock = (serverId: string, backupId: string) =>
    locks.inTurn(backupId, async () => {
      const stored = (await agent.backups.list({ serverId, isThorough: false })).find(
        (item) => item.backupId === backupId,
      )
      const isLocked = stored?.backup?.isLocked
      const isUnmarked = await transact(db, {}, async (trx) => {
        await lockServer(trx, serverId)
        const now = await store.findRow(trx, backupId)
        if (now?.status !== 'completed' || now.deleted_at !== null || isLocked === undefined) return false
        if (now.locked === 1 || !isLocked) return now.locked === 1 && !isLocked
        await store.updateBackup(trx, backupId, { locked: 1 })
        await activity.record(trx, SYSTEM, 'backup.locked', serverId, { backupId, name: now.name })
        return false
      })
      if (isUnmarked) await agent.backups.setLock({ serverId, backupId, isLocked: true })
    })

  /** Only what was so before the store was listed can be checked against it. */
  async function check(
    row: BackupRow,
    found: StoredBackup | undefined,
  ): Promise<'missing' | 'damaged' | 'unlike' | undefined> {
    return transact(db, {}, async (trx) => {
      await lockServer(trx, row.server_id)
      const now = await store.findRow(trx, row.id)
      if (!now || now.deleted_at !== null || now.status !== row.status) return undefined
      const isReadable = found?.damage === null || found?.areBlocksMissing === true
      if (now.status === 'failed' && found?.backup && isReadable) await revive(trx, now, found.backup)
      if (found?.damage) {
        const report = manifestDamage(row.server_id, row.id, found.damage)
        if (now.status === 'completed' || isReadable) await noteDamage(trx, SYSTEM, [report])
        return 'damaged'
      }
      if (now.status === 'completed' && found?.backup)
        return now.locked === (found.backup.isLocked ? 1 : 0) ? undefined : 'unlike'
      if (now.status !== 'completed' || found) return undefined
      await markLost(trx, now)
      return 'missing'
    })
  }

  /** What the disk has lost, the off-site store may have. One that does not answer has not said that it is lost. */
  function createHealing() {
    let isReached = true
    return async (row: BackupRow, found: StoredBackup | undefined): Promise<StoredBackup | undefined | 'unknown'> => {
      const isExpected = row.status === 'completed' && row.deleted_at === null
      // A manifest that is sound is not what a backup lacks whose blocks are missing.
      if (!isExpected || (found && (found.damage === null || found.areBlocksMissing))) return found
      try {
        if (isReached) return (await agent.backups.heal({ serverId: row.server_id, backupId: row.id })) ?? found
      } catch (error) {
        if (!isFailure(error, 'offsite_unreachable')) throw error
        isReached = false
      }
      return found ?? 'unknown'
    }
  }

  async function compare(
    actor: Actor,
    {
      isThorough,
      prepare,
    }: { isThorough: boolean; prepare: (item: StoredBackup, all: StoredBackup[]) => Promise<void> },
  ): Promise<Omit<Recovery, 'servers'>> {
    const rows = new Map((await store.allRows(db)).map((row) => [row.id, row]))
    const list = await agent.backups.list({ serverId: null, isThorough })
    const stored = new Map(list.map((item) => [item.backupId, item]))
    const outcome = { adopted: [] as string[], missing: [] as string[], damaged: [] as string[] }
    for (const item of list) {
      if (rows.has(item.backupId)) continue
      await prepare(item, list)
      const isAdopted = await adopt(actor, item)
      if (isAdopted && item.backup) outcome.adopted.push(item.backupId)
      if (item.damage !== null) outcome.damaged.push(item.backupId)
    }
    const orHealed = createHealing()
    for (const row of rows.values()) {
      const found = await orHealed(row, stored.get(row.id))
      if (found === 'unknown') continue
      const fault = await check(row, found)
      if (fault === 'unlike') await agreeOnLock(row.server_id, row.id)
      else if (fault) outcome[fault].push(row.id)
    }
    return outcome
  }

  return {
    compare: (actor) => compare(actor, { isThorough: false, prepare: async () => {} }),

    async recover(actor) {
      requireAllServers(actor)
      requireScope(actor, 'servers:write')
      const made: string[] = []
      const seen = new Set<string>()
      const prepare = async ({ serverId }: StoredBackup, all: StoredBackup[]) => {
        if (seen.has(serverId)) return
        seen.add(serverId)
        if (await servers.adopt(actor, serverId, nameOf(serverId, all))) made.push(serverId)
      }
      const outcome = await compare(actor, { isThorough: true, prepare })
      const answer = { servers: made, ...outcome }
      await transact(db, actor, async () => answer)
      return answer
    },
  }
}

const UNREADABLE = {
  status: 'failed',
  error: JSON.stringify({ code: 'backup_damaged', detail: 'What the store has of it cannot be read.' }),
} as const

function manifestDamage(serverId: string, backupId: string, what: string): DamageReport {
  return { blockId: null, blob: backupId, what, touches: [{ serverId, backupId, path: '/' }] }
}

/** What its newest backup calls a server. A manifest is the word of whoever could write to the store: it is looked at. */
function nameOf(serverId: string, all: readonly StoredBackup[]): string | null {
  const named = all.flatMap(({ backup }) =>
    backup?.serverId === serverId && isName(backup.serverName) ? [backup] : [],
  )
  return named.sort((a, b) => b.createdAt - a.createdAt)[0]?.serverName ?? null
}
