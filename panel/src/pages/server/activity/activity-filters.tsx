import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { Button, NativeSelect, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import type { ActivityFilter } from '../../../api/activity.ts'
import { Icon } from '../../../components/icon.tsx'
import css from './activity-tab.module.css'

const GROUPS = {
  'server.*': msg`Settings`,
  'power.*': msg`Starts and stops`,
  'game.*': msg`The game`,
  'console.*': msg`Commands`,
  'player.*': msg`Players`,
  'file.*': msg`Files`,
  'backup.*': msg`Backups`,
  'schedule.*': msg`Schedules`,
  'retention.*': msg`Retention`,
  'subdomain.*': msg`Names`,
  'job.*': msg`Jobs`,
  'access.*': msg`Refused for lack of rights`,
} as const

const HOUR_MS = 3_600_000
const PERIODS = {
  hour: { name: msg`Last hour`, ms: HOUR_MS },
  day: { name: msg`Last 24 hours`, ms: 24 * HOUR_MS },
  week: { name: msg`Last 7 days`, ms: 7 * 24 * HOUR_MS },
  month: { name: msg`Last 30 days`, ms: 30 * 24 * HOUR_MS },
} as const
type Period = keyof typeof PERIODS
const CHOSEN = 'chosen'

/** What somebody has chosen, and the filter that it makes. */
export function useFilters() {
  const [typed, setTyped] = useState('')
  const [event, setEvent] = useState('')
  const [actor, setActor] = useState('')
  const [period, setPeriod] = useState('')
  /** Of a period that was named by its length: where it begins stays where it is while somebody looks. */
  const [since, setSince] = useState('')
  const [from, setFrom] = useState('')
  const [until, setUntil] = useState('')
  const [search] = useDebouncedValue(typed.trim(), 250)
  const isChosen = period === CHOSEN
  const filter: ActivityFilter = {
    ...(search === '' ? {} : { q: search }),
    ...(event === '' ? {} : { event }),
    ...(actor === '' ? {} : { actor }),
    ...(since === '' || isChosen ? {} : { since }),
    ...(isChosen && from !== '' ? { since: new Date(from).toISOString() } : {}),
    ...(isChosen && until !== '' ? { until: new Date(until).toISOString() } : {}),
  }
  return {
    filter,
    typed,
    setTyped,
    event,
    setEvent,
    actor,
    setActor,
    period,
    from,
    setFrom,
    until,
    setUntil,
    setPeriod(next: string) {
      setPeriod(next)
      const length = PERIODS[next as Period]?.ms
      setSince(length === undefined ? '' : new Date(Date.now() - length).toISOString())
    },
    reset() {
      for (const clear of [setTyped, setEvent, setActor, setPeriod, setSince, setFrom, setUntil]) clear('')
    },
  }
}

interface Props {
  filters: ReturnType<typeof useFilters>
  actors: readonly { id: string; name: string }[]
}

export function ActivityFilters({ filters, actors }: Props) {
  const { t } = useLingui()
  const isFiltered = Object.keys(filters.filter).length > 0
  return (
    <div className={css.filters}>
      <TextInput
        className={css.search}
        type="search"
        aria-label={t`Search the activity`}
        placeholder={t`Search: a name, a path, an address`}
        leftSection={<Icon name="search" size={16} />}
        value={filters.typed}
        maxLength={191}
        onChange={(event) => filters.setTyped(event.currentTarget.value)}
      />
      <NativeSelect
        aria-label={t`What`}
        data={[
          { value: '', label: t`Everything` },
          ...Object.entries(GROUPS).map(([value, name]) => ({ value, label: t(name) })),
        ]}
        value={filters.event}
        onChange={(event) => filters.setEvent(event.currentTarget.value)}
      />
      <NativeSelect
        aria-label={t`Who`}
        data={[{ value: '', label: t`Everybody` }, ...actors.map(({ id, name }) => ({ value: id, label: name }))]}
        value={filters.actor}
        onChange={(event) => filters.setActor(event.currentTarget.value)}
      />
      <NativeSelect
        aria-label={t`When`}
        data={[
          { value: '', label: t`At any time` },
          ...Object.entries(PERIODS).map(([value, { name }]) => ({ value, label: t(name) })),
          { value: CHOSEN, label: t`From … until …` },
        ]}
        value={filters.period}
        onChange={(event) => filters.setPeriod(event.currentTarget.value)}
      />
      {filters.period === CHOSEN && (
        <>
          <TextInput
            type="datetime-local"
            aria-label={t`From`}
            value={filters.from}
            onChange={(event) => filters.setFrom(event.currentTarget.value)}
          />
          <TextInput
            type="datetime-local"
            aria-label={t`Until`}
            value={filters.until}
            onChange={(event) => filters.setUntil(event.currentTarget.value)}
          />
        </>
      )}
      {isFiltered && (
        <Button variant="subtle" onClick={filters.reset}>
          <Trans>Show everything</Trans>
        </Button>
      )}
    </div>
  )
}
