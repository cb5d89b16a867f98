import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { NewSchedule, Schedule, Server } from '../../../../../../src/sdk/index.ts'
import { useScheduleActions } from '../../../../api/backup-plans.ts'
import { Dialog } from '../../../../components/dialog.tsx'
import { DialogButtons } from '../../../../components/dialog-buttons.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { PatternsField } from '../patterns-field.tsx'
import { choiceOf, cronOf } from './cron-choice.ts'
import { CronFields } from './cron-fields.tsx'

interface Props {
  server: Server
  /** Null: a new one. */
  schedule: Schedule | null
  onClose: () => void
}

export function ScheduleDialog({ server, schedule, onClose }: Props) {
  const { t } = useLingui()
  const { save } = useScheduleActions(server.id)
  const [values, setValues] = useState(() => initial(schedule, t`Nightly`))
  const [choice, setChoice] = useState(() => choiceOf(schedule?.cron ?? '0 4 * * *'))
  const change = (changed: Partial<Values>) => setValues((before) => ({ ...before, ...changed }))
  const isBackup = values.action === 'backup'
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const request: NewSchedule = { ...values, name: values.name.trim(), cron: cronOf(choice) }
    save.mutate({ id: schedule?.id ?? null, schedule: request }, { onSuccess: onClose })
  }
  return (
    <Dialog opened onClose={onClose} title={schedule ? t`Edit ${schedule.name}` : t`New schedule`}>
      <form className="stack" onSubmit={submit}>
        <TextInput
          label={t`Name`}
          required
          maxLength={191}
          value={values.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          data-autofocus
        />
        <NativeSelect
          label={t`What it does`}
          value={values.action}
          data={[
            { value: 'backup', label: t`Make a backup` },
            { value: 'rehearse', label: t`Rehearse the newest backup: see whether the game comes up from it` },
          ]}
          onChange={(event) => change({ action: event.currentTarget.value as Values['action'] })}
        />
        <CronFields
          choice={choice}
          onChange={setChoice}
          timeZone={values.timeZone}
          onTimeZone={(timeZone) => change({ timeZone })}
        />
        <Checkbox
          label={isBackup ? t`Only if anything has changed` : t`Only if it has not passed already`}
          checked={values.onlyIfChanged}
          onChange={(event) => change({ onlyIfChanged: event.currentTarget.checked })}
        />
        {isBackup && (
          <>
            <Checkbox
              label={t`Lock its backups`}
              checked={values.isLocked}
              onChange={(event) => change({ isLocked: event.currentTarget.checked })}
            />
            <PatternsField serverId={server.id} value={values.ignored} onChange={(ignored) => change({ ignored })} />
          </>
        )}
        {save.error && <Problem error={save.error} />}
        <DialogButtons onClose={onClose}>
          <Button type="submit" loading={save.isPending}>
            <Trans>Save</Trans>
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}

type Values = Required<Pick<NewSchedule, 'name' | 'action' | 'timeZone' | 'ignored' | 'isLocked' | 'onlyIfChanged'>>

function initial(schedule: Schedule | null, name: string): Values {
  if (schedule === null) {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    return { name, action: 'backup', timeZone, ignored: '', isLocked: false, onlyIfChanged: true }
  }
  const { action, timeZone, ignored, isLocked, onlyIfChanged } = schedule
  return { name: schedule.name, action, timeZone, ignored, isLocked, onlyIfChanged }
}
