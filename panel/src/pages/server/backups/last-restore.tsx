import { Plural, Trans } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import type { Backup, Job, Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { useBackups } from '../../../api/backups.ts'
import { isUnderWay, useJobs } from '../../../api/jobs.ts'
import { Moment } from '../../../components/moment.tsx'
import css from './backups-tab.module.css'

const OFFERED_MS = 24 * 3600_000

interface Report {
  backupId: string
  safetyBackupId: string | null
  filesRestored: number
}

/** The way back from the newest restore, for a day, unless it was gone already. */
export function LastRestore({ server, onRestore }: { server: Server; onRestore: (safety: Backup) => void }) {
  const { data: jobs } = useJobs(server.id)
  const { backups } = useBackups(server.id)
  const mayWrite = useMay()('backups:write')
  const restores = jobs?.filter(({ kind, status }) => kind === 'restore' && status !== 'cancelled') ?? []
  const [newest] = restores
  if (!newest || !mayWrite || isUnderWay(newest)) return null
  const report = reportOf(newest)
  const safety = report && backups?.find(({ id }) => id === report.safetyBackupId)
  const restored = report && backups?.find(({ id }) => id === report.backupId)
  const at = newest.finishedAt
  if (!safety || at === null || Date.now() - Date.parse(at) > OFFERED_MS) return null
  // Somebody has gone back already.
  if (restores.some((job) => reportOf(job)?.safetyBackupId === report?.backupId)) return null
  return (
    <div className={css.notice} data-tone="good" role="status">
      <p>
        <Trans>
          <strong>{restored?.name}</strong> was restored <Moment at={at} />.
        </Trans>{' '}
        <Plural value={report.filesRestored} one="# file was put back." other="# files were put back." />
      </p>
      <Button size="compact-sm" variant="default" onClick={() => onRestore(safety)}>
        <Trans>Take it back</Trans>
      </Button>
    </div>
  )
}

function reportOf({ status, result }: Job): Report | null {
  return status === 'completed' ? (result as Report | null) : null
}
