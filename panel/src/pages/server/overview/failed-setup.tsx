import { Trans } from '@lingui/react/macro'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useJobs } from '../../../api/jobs.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import css from './overview-tab.module.css'

interface Props {
  server: Server
  kinds: readonly string[]
}

/** Why the game is not there, where its installation or the start after it has failed, until somebody tries again. */
export function FailedSetup({ server: { id, power }, kinds }: Props) {
  const { data } = useJobs(id)
  const last = data?.find(({ kind, status }) => kinds.includes(kind) && status !== 'cancelled')
  if (last?.status !== 'failed' || last.finishedAt === null) return null
  const isOver = power.since !== null && power.since > last.finishedAt
  if (isOver) return null
  return (
    <div className={css.exit} role="status">
      <Icon name="warning" size={20} />
      <div>
        <p>
          <strong>
            {last.kind === 'install' ? (
              <Trans>It could not be installed.</Trans>
            ) : (
              <Trans>It could not be started.</Trans>
            )}
          </strong>{' '}
          <Moment at={last.finishedAt} />
        </p>
        <p className="soft">{last.error?.detail}</p>
      </div>
    </div>
  )
}
