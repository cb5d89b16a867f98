import { useLingui } from '@lingui/react/macro'
import { CloseButton, Progress } from '@mantine/core'
import type { Job } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { client } from '../../../api/client.ts'
import { isUnderWay, useJobs } from '../../../api/jobs.ts'
import { showFailure } from '../../../components/toasts.tsx'
import { formatBytes, formatCount } from '../../../i18n/format.ts'
import css from './job-strip.module.css'

interface Props {
  serverId: string
  kinds: readonly string[]
}

/** Work of these kinds that is under way, whoever started it, with how far it is. */
export function JobStrip({ serverId, kinds }: Props) {
  const { t } = useLingui()
  const { data } = useJobs(serverId)
  const shown = data?.filter((job) => isUnderWay(job) && kinds.includes(job.kind)) ?? []
  if (shown.length === 0) return null
  return (
    <section className={`card ${css.strip}`} aria-label={t`Under way`}>
      {shown.map((job) => (
        <JobProgress key={job.id} serverId={serverId} job={job} />
      ))}
    </section>
  )
}

function JobProgress({ serverId, job }: { serverId: string; job: Job }) {
  const { t, i18n } = useLingui()
  const mayCancel = useMay()('servers:write')
  const titles: Record<string, string> = {
    restore: t`Restoring`,
    'restore.finish': t`Finishing the restore`,
    verify: t`Verifying`,
    rehearse: t`Rehearsing`,
    pack: t`Packing`,
    unpack: t`Unpacking`,
    pull: t`Fetching`,
    install: t`Installing`,
    start: t`Start`,
  }
  const title = titles[job.kind] ?? job.kind
  const { bytesDone, bytesTotal, filesDone, filesTotal } = job.progress
  // An installation counts its steps as files.
  const isInstall = job.kind === 'install'
  const [done, total] = isInstall ? [filesDone, filesTotal] : [bytesDone, bytesTotal]
  const percent = total ? Math.min(100, (done / total) * 100) : null
  const cancel = () =>
    client.jobs.cancel(serverId, job.id).catch((error: unknown) => showFailure(t`It could not be cancelled`, error))
  return (
    <div className={css.job}>
      <div className={css.head}>
        <span className="grow">{title}</span>
        <span className="small faint">
          {job.status === 'queued'
            ? job.kind === 'start'
              ? t`Once it is installed, also if you leave`
              : t`Waiting for its turn`
            : isInstall
              ? filesTotal !== null && t`Step ${Math.min(filesDone + 1, filesTotal)} of ${filesTotal}`
              : t`${formatCount(filesDone, i18n.locale)} files, ${formatBytes(bytesDone, i18n.locale)}`}
        </span>
        {mayCancel && <CloseButton size="sm" aria-label={t`Cancel: ${title}`} onClick={() => void cancel()} />}
      </div>
      <Progress value={job.status === 'queued' ? 0 : (percent ?? 100)} animated size="sm" aria-label={title} />
    </div>
  )
}
