import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import type { Schedule, Server } from '../../../../../../src/sdk/index.ts'
import { useMay } from '../../../../api/access/session.ts'
import { useSchedules } from '../../../../api/backup-plans.ts'
import { Icon } from '../../../../components/icon.tsx'
import { Problem } from '../../../../components/problem.tsx'
import css from './plans.module.css'
import { ScheduleDialog } from './schedule-dialog.tsx'
import { ScheduleRow } from './schedule-row.tsx'

export function Schedules({ server }: { server: Server }) {
  const { t } = useLingui()
  const mayWrite = useMay()('backups:write')
  const { data, error, refetch } = useSchedules(server.id)
  const [edited, setEdited] = useState<Schedule | 'new' | null>(null)
  return (
    <section className={`card ${css.plan}`} aria-label={t`Schedules`}>
      <div className="row spread">
        <h2>
          <Trans>Schedules</Trans>
        </h2>
        {mayWrite && (
          <Button size="sm" leftSection={<Icon name="plus" size={16} />} onClick={() => setEdited('new')}>
            <Trans>New schedule</Trans>
          </Button>
        )}
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={60} />}
      {data?.length === 0 && (
        <p className="soft">
          <Trans>None yet. A nightly backup that is left out when nothing has changed costs almost nothing.</Trans>
        </p>
      )}
      {data && data.length > 0 && (
        <ul className={css.schedules}>
          {data.map((schedule) => (
            <ScheduleRow key={schedule.id} server={server} schedule={schedule} onEdit={() => setEdited(schedule)} />
          ))}
        </ul>
      )}
      {edited && (
        <ScheduleDialog server={server} schedule={edited === 'new' ? null : edited} onClose={() => setEdited(null)} />
      )}
    </section>
  )
}
