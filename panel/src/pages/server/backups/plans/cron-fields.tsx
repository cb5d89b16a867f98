import { useLingui } from '@lingui/react/macro'
import { NativeSelect, TextInput } from '@mantine/core'
import { type CronChoice, withKind } from './cron-choice.ts'
import css from './plans.module.css'
import { weekdayName } from './weekdays.ts'

interface Props {
  choice: CronChoice
  onChange: (choice: CronChoice) => void
  timeZone: string
  onTimeZone: (timeZone: string) => void
}

const WEEK = [1, 2, 3, 4, 5, 6, 0]

export function CronFields({ choice, onChange, timeZone, onTimeZone }: Props) {
  const { t, i18n } = useLingui()
  return (
    <div className={css.when}>
      <NativeSelect
        label={t`When`}
        value={choice.kind}
        data={[
          { value: 'hourly', label: t`Every hour` },
          { value: 'daily', label: t`Every day` },
          { value: 'weekly', label: t`Every week` },
          { value: 'custom', label: t`As a cron expression` },
        ]}
        onChange={(event) => onChange(withKind(choice, event.currentTarget.value as CronChoice['kind']))}
      />
      {choice.kind === 'weekly' && (
        <NativeSelect
          label={t`On`}
          value={String(choice.weekday)}
          data={WEEK.map((weekday) => ({ value: String(weekday), label: weekdayName(weekday, i18n.locale) }))}
          onChange={(event) => onChange({ ...choice, weekday: Number(event.currentTarget.value) })}
        />
      )}
      {(choice.kind === 'daily' || choice.kind === 'weekly') && (
        <TextInput
          type="time"
          label={t`At`}
          required
          value={choice.time}
          onChange={(event) => onChange({ ...choice, time: event.currentTarget.value })}
        />
      )}
      {choice.kind === 'custom' && (
        <TextInput
          label={t`Cron expression`}
          description={t`Minute, hour, day of the month, month, day of the week`}
          required
          classNames={{ input: 'mono' }}
          value={choice.cron}
          onChange={(event) => onChange({ ...choice, cron: event.currentTarget.value })}
        />
      )}
      <TextInput
        label={t`Time zone`}
        list="time-zones"
        value={timeZone}
        onChange={(event) => onTimeZone(event.currentTarget.value)}
      />
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </div>
  )
}
