import { Trans, useLingui } from '@lingui/react/macro'
import { Tooltip } from '@mantine/core'
import { type CalendarDay, type CalendarMonth, calendarOf, type Fate } from './kept.ts'
import css from './kept-calendar.module.css'

export function KeptCalendar({ fates }: { fates: readonly Fate[] }) {
  return (
    <div>
      <div className={css.months}>
        {calendarOf(fates).map((month) => (
          <Month key={month.at} month={month} />
        ))}
      </div>
      <p className={`small soft ${css.legend}`}>
        <span>
          <i className={css.swatch} data-fate="kept" /> <Trans>kept</Trans>
        </span>
        <span>
          <i className={css.swatch} data-fate="both" /> <Trans>some kept</Trans>
        </span>
        <span>
          <i className={css.swatch} data-fate="going" /> <Trans>deleted</Trans>
        </span>
      </p>
    </div>
  )
}

function Month({ month: { at, offset, days } }: { month: CalendarMonth }) {
  const { i18n } = useLingui()
  const title = new Intl.DateTimeFormat(i18n.locale, { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(at)
  return (
    <section aria-label={title}>
      <h3 className={css.title}>{title}</h3>
      <div className={css.days}>
        {days.map((day, index) => (
          <Day key={day.at} day={day} column={index === 0 ? offset + 1 : null} />
        ))}
      </div>
    </section>
  )
}

function Day({ day: { at, kept, going }, column }: { day: CalendarDay; column: number | null }) {
  const { t } = useLingui()
  const fate =
    kept.length + going.length === 0 ? null : going.length === 0 ? 'kept' : kept.length === 0 ? 'going' : 'both'
  const position = column === null ? undefined : { gridColumnStart: column }
  const number = new Date(at).getUTCDate()
  if (fate === null) {
    return (
      <span className={css.day} style={position}>
        {number}
      </span>
    )
  }
  const names = (fates: readonly Fate[]) => fates.map(({ name }) => name).join(', ')
  const lines = [kept.length > 0 && t`Kept: ${names(kept)}`, going.length > 0 && t`Deleted: ${names(going)}`]
  const label = lines.filter(Boolean).join('. ')
  return (
    <Tooltip label={label} multiline maw={320}>
      <span className={css.day} data-fate={fate} style={position} role="img" aria-label={`${number}: ${label}`}>
        {number}
      </span>
    </Tooltip>
  )
}
