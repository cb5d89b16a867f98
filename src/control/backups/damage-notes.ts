// What was found damaged, recorded with every backup that it affects.
import type { DamageReport } from '../../contract/agent/agent-backups.ts'
import type { Activity } from '../activity/service.ts'
import type { Trx } from '../db/tables.ts'
import type { Actor } from '../http/actor.ts'
import * as store from './store.ts'

const PATHS_TOLD = 20

/** In a transaction that has locked the servers of the damage: what was found wrong, with the backups that it touches. */
export type NoteDamage = (trx: Trx, actor: Actor, damage: readonly DamageReport[]) => Promise<void>

export function createDamageNotes({
  activity,
  onDamage,
}: {
  activity: Pick<Activity, 'record'>
  onDamage: (count: number) => void
}): NoteDamage {
  /** Damage that touches no backup is reported once a process, not once a day. */
  const reported = new Set<string>()

  return async (trx, actor, damage) => {
    // Of what is damaged in the off-site store alone, no backup is damaged for.
    for (const [backupId, paths] of touchedBy(damage.filter(({ isOffsite }) => !isOffsite))) {
      const row = await store.findRow(trx, backupId)
      if (!row || row.deleted_at !== null) continue
      const sentence = sentenceFor(paths)
      await store.updateBackup(trx, backupId, { damage: sentence })
      if (row.damage === sentence) continue
      const properties = { backupId, name: row.name, pathCount: paths.length, paths: paths.slice(0, PATHS_TOLD) }
      await activity.record(trx, actor, 'backup.damage_found', row.server_id, properties)
      onDamage(1)
    }
    for (const { blob, what, touches, isOffsite } of damage) {
      const key = isOffsite ? `off-site ${blob}` : blob
      if ((touches.length > 0 && !isOffsite) || reported.has(key)) continue
      reported.add(key)
      const properties = { blob, what, ...(isOffsite ? { isOffsite } : {}) }
      await activity.record(trx, actor, 'backup.damage_found', touches[0]?.serverId ?? null, properties)
      onDamage(1)
    }
  }
}

/** The paths that cannot be read, by backup. */
export function touchedBy(damage: readonly DamageReport[]): Map<string, string[]> {
  const touched = new Map<string, string[]>()
  for (const { touches } of damage) {
    for (const { backupId, path } of touches) {
      const paths = touched.get(backupId)
      if (paths) paths.push(path)
      else touched.set(backupId, [path])
    }
  }
  return touched
}

function sentenceFor(paths: readonly string[]): string {
  const [first] = paths
  if (!first) return 'The backup is damaged and cannot be read.'
  const others = new Set(paths).size - 1
  return `The backup is damaged: ${first}${others > 0 ? ` and ${others} more` : ''} cannot be read.`
}
