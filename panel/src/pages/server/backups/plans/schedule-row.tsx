import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, Switch } from '@mantine/core'
import { useState } from 'react'
import type { Schedule, Server } from '../../../../../../src/sdk/index.ts'
import { useMay } from '../../../../api/access/session.ts'
import { useScheduleActions } from '../../../../api/backup-plans.ts'
import { Confirm } from '../../../../components/confirm.tsx'
import { Icon } from '../../../../components/icon.tsx'
import { Moment } from '../../../../components/moment.tsx'
import { showFailure } from '../../../../components/toasts.tsx'
import { choiceOf } from './cron-choice.ts'
import css from './plans.module.css'
import { weekdayName } from './weekdays.ts'

interface Props {
  server: Server
  schedule: Schedule
  onEdit: () => void
}

export function ScheduleRow({ server, schedule, onEdit }: Props) {
  const { t } = useLingui()
  const mayWrite = useMay()('backups:write')
  const { setEnabled, remove } = useScheduleActions(server.id)
  const [isDeleting, setDeleting] = useState(false)
  const { id, name, isEnabled } = schedule
  return (
    <li className={css.schedule}>
      <Switch
        aria-label={t`${name} is on`}
        checked={isEnabled}
        disabled={!mayWrite}
        onChange={(event) =>
          setEnabled.mutate(
            { id, isEnabled: event.currentTarget.checked },
            { onError: (error) => showFailure(t`The schedule was not changed`, error) },
          )
        }
      />
      <div className={css.body}>
        <p className={css.name}>{name}</p>
        <p className="small soft">
          <When schedule={schedule} />
        </p>
        <p className="small faint">
          <Outcome schedule={schedule} />
        </p>
      </div>
      {mayWrite && (
        <div className={css.tools}>
          <Button size="compact-sm" variant="default" onClick={onEdit}>
            <Trans>Edit</Trans>
          </Button>
          <ActionIcon variant="subtle" color="gray" aria-label={t`Delete ${name}`} onClick={() => setDeleting(true)}>
            <Icon name="trash" size={16} />
          </ActionIcon>
        </div>
      )}
      <Confirm
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={() => remove.mutate(id, { onError: (error) => showFailure(t`The schedule was not deleted`, error) })}
        title={t`Delete the schedule ${name}?`}
        text={t`The backups that it made stay.`}
        action={t`Delete`}
      />
    </li>
  )
}

function When({ schedule: { cron, timeZone, action, onlyIfChanged } }: { schedule: Schedule }) {
  const { t, i18n } = useLingui()
  const choice = choiceOf(cron)
  const times = {
    hourly: () => t`Every hour`,
    daily: () => t`Every day at ${'time' in choice ? choice.time : ''}`,
    weekly: () => {
      const weekday = 'weekday' in choice ? weekdayName(choice.weekday, i18n.locale) : ''
      return t`Every ${weekday} at ${'time' in choice ? choice.time : ''}`
    },
    custom: () => cron,
  }
  const what = action === 'rehearse' ? t`rehearses the newest backup` : t`makes a backup`
  return (
    <>
      {times[choice.kind]()} ({timeZone}): {what}
      {onlyIfChanged && `, ${action === 'rehearse' ? t`unless it has passed already` : t`if anything changed`}`}
    </>
  )
}

function Outcome({ schedule: { nextRunAt, lastRunAt, lastOutcome, isEnabled } }: { schedule: Schedule }) {
  const { t } = useLingui()
  const outcomes: Record<string, string> = { started: t`done`, unchanged: t`nothing had changed` }
  return (
    <>
      {isEnabled && nextRunAt && (
        <Trans>
          Next <Moment at={nextRunAt} />.
        </Trans>
      )}{' '}
      {lastRunAt && (
        <Trans>
          Last <Moment at={lastRunAt} />: {outcomes[lastOutcome ?? ''] ?? lastOutcome}.
        </Trans>
      )}
    </>
  )
}
