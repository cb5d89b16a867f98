import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { useBackupActions } from '../../../api/backups.ts'
import { showFailure, showToast } from '../../../components/toasts.tsx'
import { useFollowJob } from '../jobs/follow-job.ts'
import css from './backups-tab.module.css'

/** A restore that stopped in the middle. Until somebody chooses how it ends, the server takes no changes. */
export function UnfinishedRestore({ server }: { server: Server }) {
  const { t } = useLingui()
  const { finishRestore } = useBackupActions(server.id)
  const follow = useFollowJob(server.id)
  const mayWrite = useMay()('backups:write')
  const { unfinishedRestore } = server
  if (unfinishedRestore === null) return null
  const finish = async (direction: 'forward' | 'back') => {
    const failed = t`The restore could not be finished`
    const job = await finishRestore.mutateAsync(direction).catch((error: unknown) => showFailure(failed, error))
    if (job) await follow(job, { failed, onDone: () => showToast(t`The restore is finished.`) })
  }
  return (
    <div className={css.notice} data-tone="bad" role="alert">
      <div>
        <p>
          <strong>
            <Trans>A restore stopped in the middle</Trans>
          </strong>
        </p>
        <p>
          <Trans>Nothing is lost, and nothing changes until you choose how it ends. Mend the cause first:</Trans>{' '}
          <span className="mono">{unfinishedRestore.reason}</span>
        </p>
      </div>
      {mayWrite && (
        <div className="row">
          <Button size="compact-sm" loading={finishRestore.isPending} onClick={() => void finish('forward')}>
            <Trans>Go on to the backup</Trans>
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            loading={finishRestore.isPending}
            onClick={() => void finish('back')}
          >
            <Trans>Go back to what was there</Trans>
          </Button>
        </div>
      )}
    </div>
  )
}
