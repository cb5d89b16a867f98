// Wires everything about backups together.
import type { Logger } from 'pino'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Agent } from '../../contract/agent.ts'
import type { SignedLinks } from '../../http/signed-links.ts'
import type { Activity } from '../activity/service.ts'
import type { Changes } from '../db/row-changes.ts'
import type { Db } from '../db/tables.ts'
import type { HealthCheck } from '../http/health.ts'
import type { Cursors } from '../http/paging.ts'
import type { Jobs } from '../jobs/runner.ts'
import type { Servers } from '../servers/service.ts'
import { createContents } from './contents.ts'
import { createLockKeeper } from './locks.ts'
import { createMaking } from './making.ts'
import { createOffsite, type OffsitePlace } from './offsite/service.ts'
import { createReconciling } from './reconcile.ts'
import { createRecovering } from './recovering.ts'
import { createRehearsals } from './rehearsals.ts'
import { createRemoval } from './removal.ts'
import { createRestores } from './restores/restore.ts'
import { createRestoreEnds } from './restores/restore-ends.ts'
import { createRestoreFinishing } from './restores/restore-finish.ts'
import { createRestorePauses } from './restores/restore-pauses.ts'
import { createRetention } from './retention/retention.ts'
import { createSchedules } from './schedules/schedules.ts'
import { createBackups } from './service.ts'
import * as store from './store.ts'
import { createVerifying } from './verify.ts'

export interface BackupSliceDeps {
  db: Db
  agent: Pick<Agent, 'backups' | 'tasks' | 'games' | 'offsite'>
  activity: Activity
  jobs: Jobs
  changes: Changes
  servers: Pick<Servers, 'adopt'>
  games: Parameters<typeof createRehearsals>[0]['games'] & Parameters<typeof createMaking>[0]['games']
  links: SignedLinks
  cursors: Cursors
  clock: { now(): number }
  log: Logger
  /** How many may be made at once. */
  atOnce: number
  /** Where they are mirrored; null: nowhere. */
  offsite: OffsitePlace | null
}

export type BackupSlice = ReturnType<typeof createBackupSlice>

export function createBackupSlice(sliceDeps: BackupSliceDeps) {
  const offsite = createOffsite(sliceDeps)
  const deps = { ...sliceDeps, offsite }
  const { db, agent } = deps
  let damageFound = 0
  const removal = createRemoval(deps)
  const retention = createRetention({ ...deps, removal })
  const locks = createLockKeeper(deps)
  const making = createMaking({ ...deps, removal, retention, locks })
  const backups = createBackups({ ...deps, removal, locks })
  const verifying = createVerifying({
    ...deps,
    onDamage: (count) => {
      damageFound += count
    },
  })
  const ends = createRestoreEnds({ ...deps, retention })
  const pauses = createRestorePauses(deps)
  const finishing = createRestoreFinishing({ ...deps, ends, pauses })
  const rehearsals = createRehearsals(deps)
  const recovering = createRecovering({ ...deps, noteDamage: verifying.noteDamage, locks })
  const reconciling = createReconciling({ ...deps, removal, finishing, recovering })
  return {
    backups,
    retention,
    verifying,
    reconciling,
    restores: createRestores({ ...deps, making, ends, pauses }),
    finishing,
    pauses,
    rehearsals,
    offsite,
    contents: createContents(deps),
    schedules: createSchedules({ ...deps, backups, rehearsals }),

    /** Whether every backup is known to be sound, and no server waits for one that failed. */
    health: { name: 'backups', check: () => findFault(db, agent) } satisfies HealthCheck,

    measure(registry: Registry): void {
      const registers = [registry]
      offsite.measure(registry)
      new Gauge({
        name: 'gamekeeper_backups',
        help: 'Backups by status',
        labelNames: ['status'] as const,
        registers,
        async collect() {
          this.reset()
          for (const { status, count } of await store.countByStatus(db)) this.labels(status).set(count)
        },
      })
      new Gauge({
        name: 'gamekeeper_backups_damaged',
        help: 'Backups that were found damaged and not healed since',
        registers,
        async collect() {
          this.set(await store.countDamaged(db))
        },
      })
      new Counter({
        name: 'gamekeeper_backup_damage_found_total',
        help: 'How often damage was found since the start',
        registers,
        collect() {
          this.reset()
          this.inc(damageFound)
        },
      })
    },
  }
}

async function findFault(db: Db, agent: Pick<Agent, 'backups'>): Promise<string | undefined> {
  const damaged = await store.countDamaged(db)
  if (damaged > 0) return `${damaged} damaged; the activity says which`
  const failed = await store.countUnresolvedFailures(db)
  if (failed > 0) return `${failed} failed and no later one of the server has completed; the activity says which`
  const { damagedBlobs } = await agent.backups.store()
  return damagedBlobs.length > 0 ? 'the store has damage that touches no backup' : undefined
}
