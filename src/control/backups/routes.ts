import * as inside from '../../contract/backups/backup-contents.ts'
import * as plans from '../../contract/backups/backup-plans.ts'
import { previewBackup } from '../../contract/backups/backup-preview.ts'
import * as backups from '../../contract/backups/backups.ts'
import * as mirror from '../../contract/backups/offsite.ts'
import * as rehearsing from '../../contract/backups/rehearsal-operations.ts'
import type { Job } from '../../contract/jobs.ts'
import { BASE_PATH } from '../../contract/operation.ts'
import { whileClientStays } from '../../http/client-left.ts'
import type { Forward } from '../../http/forward.ts'
import { type Api, serve } from '../http/route.ts'
import type { Streams } from '../http/streams/open-streams.ts'
import { readOrFollow } from '../http/streams/state-stream.ts'
import type { BackupSlice } from './index.ts'

const asJob = {
  location: (job: Job & { serverId: string }) => `${BASE_PATH}/servers/${job.serverId}/jobs/${job.id}`,
  body: ({ serverId: _, ...job }: Job & { serverId: string }): Job => job,
}

export function backupRoutes(api: Api, slice: BackupSlice, streams: Streams): void {
  const { backups: service, restores, finishing, verifying, rehearsals, contents, reconciling } = slice

  serve(api, backups.createBackup, (call) => service.create(call.actor, call.params.serverId, call.body), {
    location: ({ serverId, id }) => `${BASE_PATH}/backups/${serverId}/${id}`,
  })
  serve(api, previewBackup, ({ actor, params, body, reply }) =>
    whileClientStays(reply, AbortSignal.any([]), (signal) => contents.preview(actor, params.serverId, body, signal)),
  )
  serve(api, backups.listBackups, (call) => service.list(call.actor, call.params.serverId, call.query))
  serve(api, backups.readBackup, (call) => {
    const { serverId, backupId } = call.params
    return readOrFollow(streams, call, 'backup', {
      read: () => service.read(call.actor, serverId, backupId),
      follow: (signal) => service.follow(call.actor, serverId, backupId, signal),
    })
  })
  serve(api, backups.lockBackup, (call) =>
    service.setLock(call.actor, call.params.serverId, call.params.backupId, true),
  )
  serve(api, backups.unlockBackup, (call) =>
    service.setLock(call.actor, call.params.serverId, call.params.backupId, false),
  )
  serve(api, backups.deleteBackup, (call) => service.remove(call.actor, call.params.serverId, call.params.backupId))
  serve(
    api,
    backups.restoreBackup,
    (call) => restores.start(call.actor, call.params.serverId, call.params.backupId, call.body),
    asJob,
  )
  serve(
    api,
    backups.finishRestore,
    (call) => finishing.start(call.actor, call.params.serverId, call.body.direction),
    asJob,
  )
  serve(
    api,
    backups.verifyBackup,
    ({ actor, params, query }) =>
      verifying.start(actor, params.serverId, params.backupId, { isOffsite: query.offsite === true }),
    asJob,
  )
  serve(
    api,
    rehearsing.rehearseBackup,
    (call) => rehearsals.start(call.actor, call.params.serverId, call.params.backupId, call.body),
    asJob,
  )
  serve(api, rehearsing.readRehearsal, (call) =>
    rehearsals.read(call.actor, call.params.serverId, call.params.backupId),
  )
  serve(api, inside.requestBackupDownload, (call) =>
    contents.requestDownload(
      call.actor,
      call.params.serverId,
      api.baseUrlOf(call.request),
      call.params.backupId,
      call.body.format,
    ),
  )
  serve(api, inside.browseBackup, (call) =>
    contents.browse(call.actor, call.params.serverId, call.params.backupId, call.query),
  )
  serve(api, inside.listFileVersions, (call) => contents.versions(call.actor, call.params.serverId, call.query))
  serve(api, inside.compareBackups, ({ actor, params, query, reply }) =>
    whileClientStays(reply, AbortSignal.any([]), (signal) => contents.compare(actor, params.serverId, query, signal)),
  )
  serve(api, backups.recoverBackups, (call) => reconciling.recover(call.actor))
}

export function backupPlanRoutes(api: Api, { retention, schedules }: BackupSlice): void {
  serve(api, plans.readRetention, (call) => retention.read(call.actor, call.params.serverId))
  serve(api, plans.setRetention, (call) => retention.set(call.actor, call.params.serverId, call.body))
  serve(api, plans.applyRetention, (call) => retention.apply(call.actor, call.params.serverId, call.body.dryRun))
  serve(api, plans.listSchedules, (call) => schedules.list(call.actor, call.params.serverId, call.query))
  serve(api, plans.createSchedule, (call) => schedules.create(call.actor, call.params.serverId, call.body), {
    location: ({ serverId, id }) => `${BASE_PATH}/backups/${serverId}/schedules/${id}`,
  })
  serve(api, plans.readSchedule, (call) => schedules.read(call.actor, call.params.serverId, call.params.scheduleId))
  serve(api, plans.changeSchedule, (call) =>
    schedules.change(call.actor, call.params.serverId, call.params.scheduleId, call.body),
  )
  serve(api, plans.deleteSchedule, (call) => schedules.remove(call.actor, call.params.serverId, call.params.scheduleId))
}

export function offsiteRoutes(api: Api, { offsite }: BackupSlice): void {
  serve(api, mirror.readOffsite, (call) => offsite.read(call.actor))
  serve(api, mirror.pruneOffsite, (call) => offsite.prune(call.actor, call.body.bytes))
  serve(api, mirror.claimOffsite, (call) => offsite.claim(call.actor))
}

/** The two whose bytes come from the agent: control decides, the agent reads. */
export function backupContentRoutes(api: Api, { contents }: BackupSlice, forward: Forward): void {
  serve(api, inside.downloadBackup, async ({ actor, params, query, request, reply }) => {
    const link = await contents.linkFor(actor, params.serverId, params.backupId, query)
    await forward('download-backup', link, request, reply)
    return undefined
  })
  serve(api, inside.readBackupFile, async ({ actor, params, query, request, reply }) => {
    const link = await contents.linkFor(actor, params.serverId, params.backupId, { path: query.path })
    await forward('download-backup', link, request, reply)
    return undefined
  })
}
