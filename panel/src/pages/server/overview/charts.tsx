import { Trans, useLingui } from '@lingui/react/macro'
import { SegmentedControl, Skeleton, useComputedColorScheme } from '@mantine/core'
import '@mantine/core/styles/FloatingIndicator.css'
import { useEffect, useRef, useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { RANGES, type Range, type Series, useStats } from '../../../api/stats.ts'
import { Problem } from '../../../components/problem.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import { columnsOf, hasAny, type Measure, mostOf } from './chart-data.ts'
import css from './charts.module.css'
import { createLineChart, type LineChart } from './line-chart.ts'

const HEIGHT_PX = 112
const MIB = 1024 ** 2
/** Where the lines of an axis may lie: whole players, and bytes that are round in what they are written in. */
const STEPS: Record<Measure, number[]> = {
  cpuPercent: [1, 5, 10, 25, 50, 100, 200, 500, 1000, 5000, 10_000, 50_000],
  memoryBytes: Array.from({ length: 30 }, (_, power) => MIB * 2 ** power),
  players: [1, 2, 5, 10, 20, 50, 100, 500, 1000],
}

export default function Charts({ server }: { server: Server }) {
  const { t, i18n } = useLingui()
  const [range, setRange] = useState<Range>('hour')
  const { series, newest, error, refetch } = useStats(server.id, range)
  const isOn = ['starting', 'running', 'stopping'].includes(server.power.state)
  const percent = (value: number) => `${Math.round(value)} %`
  const bytes = (value: number) => formatBytes(value, i18n.locale)
  const { memoryBytes, cpuPercent } = server.limits
  const common = { series, range, newest: isOn ? newest : null }
  return (
    <section className={`card ${css.charts}`} aria-label={t`Usage`}>
      <SegmentedControl
        fullWidth
        size="xs"
        aria-label={t`Period`}
        value={range}
        onChange={(value) => setRange(value as Range)}
        data={[
          { value: 'hour', label: t`1 h` },
          { value: 'quarter', label: t`6 h` },
          { value: 'day', label: t`24 h` },
          { value: 'week', label: t`7 days` },
        ]}
      />
      {error && !series && <Problem error={error} onRetry={() => void refetch()} />}
      {series && series.points.length === 0 && (
        <p className={`small soft ${css.nothing}`}>
          <Trans>Nothing was measured in this time. The game is measured while it runs, every ten seconds.</Trans>
        </p>
      )}
      {series?.points.length !== 0 && (
        <>
          <Chart {...common} measure="cpuPercent" title={t`CPU`} format={percent} ceiling={10} limit={cpuPercent} />
          <Chart
            {...common}
            measure="memoryBytes"
            title={t`Memory`}
            format={bytes}
            ceiling={64 * MIB}
            limit={memoryBytes}
          />
        </>
      )}
      {series && hasAny(series.points, 'players') && (
        <Chart {...common} measure="players" title={t`Players`} format={String} ceiling={4} limit={null} isStepped />
      )}
    </section>
  )
}

interface ChartProps {
  measure: Measure
  title: string
  series: Series | null
  range: Range
  newest: Series['points'][number] | null
  format: (value: number) => string
  ceiling: number
  limit: number | null
  isStepped?: boolean
}

function Chart({ measure, title, series, range, newest, format, ceiling, limit, isStepped = false }: ChartProps) {
  const { t, i18n } = useLingui()
  const host = useRef<HTMLDivElement>(null)
  const chart = useRef<LineChart>(null)
  const scheme = useComputedColorScheme()
  const [pointed, setPointed] = useState<{ at: Date; value: number | null } | null>(null)
  const formatter = useRef(format)
  formatter.current = format

  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours come with the scheme, from the style sheet
  useEffect(() => {
    if (!host.current) return
    const made = createLineChart(host.current, {
      locale: i18n.locale,
      height: HEIGHT_PX,
      format: (value) => formatter.current(value),
      ceiling,
      steps: STEPS[measure],
      isStepped,
      onPoint: setPointed,
    })
    chart.current = made
    return () => {
      chart.current = null
      made.dispose()
    }
  }, [scheme, i18n.locale, ceiling, measure, isStepped])

  // biome-ignore lint/correctness/useExhaustiveDependencies: a chart that was made anew is empty
  useEffect(() => {
    const now = Date.now() / 1000
    if (series) chart.current?.show(columnsOf(series, measure), [now - RANGES[range], now])
  }, [series, measure, range, scheme, i18n.locale])

  const current = newest?.[measure] ?? null
  const most = series && mostOf(columnsOf(series, measure))
  const now = current === null ? t`not measured` : format(current)
  return (
    <figure className={css.chart}>
      <figcaption className={css.caption}>
        <span className="soft">{title}</span>
        <span className={css.value}>
          {pointed && pointed.value !== null ? (
            <>
              <span className="small faint">{timeOf(pointed.at, range, i18n.locale)}</span> {format(pointed.value)}
            </>
          ) : (
            <>
              {current === null ? '–' : format(current)}
              {limit !== null && current !== null && (
                <span className="small faint">
                  {' '}
                  <Trans>of {format(limit)}</Trans>
                </span>
              )}
            </>
          )}
        </span>
      </figcaption>
      {!series && <Skeleton height={HEIGHT_PX} radius="sm" />}
      <div
        ref={host}
        className={css.plot}
        role="img"
        aria-label={most === null ? title : t`${title}: now ${now}, at most ${format(most)}`}
        hidden={!series}
      />
    </figure>
  )
}

const timeOf = (at: Date, range: Range, locale: string) =>
  new Intl.DateTimeFormat(locale, {
    ...(range === 'week' ? { weekday: 'short' } : {}),
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(range === 'hour' ? { second: '2-digit' } : {}),
  }).format(at)
