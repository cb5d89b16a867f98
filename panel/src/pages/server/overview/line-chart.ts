// One line over time. uPlot draws on a canvas, so colours are read from the style sheet and not set by it.
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Columns } from './chart-data.ts'

export interface LineChart {
  show(columns: Columns, window: readonly [from: number, to: number]): void
  dispose(): void
}

interface Options {
  locale: string
  height: number
  /** How a value is written, at the axis and under the pointer. */
  format: (value: number) => string
  /** The axis reaches at least to it. */
  ceiling: number
  /** What the lines of the axis may lie apart. */
  steps: number[]
  /** Whether values jump, such as a number of players. */
  isStepped: boolean
  /** The point under the pointer; null where there is none. */
  onPoint: (point: { at: Date; value: number | null } | null) => void
}

const DAY_SECONDS = 86_400

export function createLineChart(host: HTMLElement, options: Options): LineChart {
  const { locale, height, format, ceiling, steps, isStepped, onPoint } = options
  const style = getComputedStyle(host)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  let shown: readonly [number, number] = [0, 1]
  const axis = { stroke: colour('--ink-faint'), font: `11px ${style.fontFamily}`, ticks: { show: false } }
  const chart = new UPlot(
    {
      width: host.clientWidth || 300,
      height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: {
        x: { time: true, range: () => [shown[0], shown[1]] },
        y: { range: (_, __, most) => [0, Math.max(ceiling, (most ?? 0) * 1.1)] },
      },
      series: [
        {},
        {
          stroke: colour('--accent'),
          fill: `color-mix(in srgb, ${colour('--accent')} 14%, transparent)`,
          width: 1.5,
          points: { show: false },
          ...(isStepped && UPlot.paths.stepped ? { paths: UPlot.paths.stepped({ align: 1 }) } : {}),
        },
      ],
      axes: [
        { ...axis, grid: { show: false }, space: 70, size: 24, gap: 2, values: (_, at) => timesOf(at, shown, locale) },
        {
          ...axis,
          grid: { stroke: colour('--line'), width: 1 },
          space: 28,
          incrs: steps,
          gap: 4,
          size: (plot, values) => widestOf(plot, values) + 10,
          values: (_, values) => values.map(format),
        },
      ],
      hooks: {
        setCursor: [
          ({ cursor: { idx }, data }) => {
            const at = idx == null ? undefined : data[0][idx]
            onPoint(at === undefined || idx == null ? null : { at: new Date(at * 1000), value: data[1]?.[idx] ?? null })
          },
        ],
      },
    },
    [[], []],
    host,
  )
  const sizes = new ResizeObserver(() => chart.setSize({ width: host.clientWidth, height }))
  sizes.observe(host)
  return {
    show(columns, window) {
      shown = window
      chart.setData(columns)
    },
    dispose() {
      sizes.disconnect()
      chart.destroy()
    },
  }
}

function timesOf(at: readonly number[], [from, to]: readonly [number, number], locale: string): string[] {
  const format = new Intl.DateTimeFormat(
    locale,
    to - from > 2 * DAY_SECONDS
      ? { weekday: 'short', day: 'numeric' }
      : { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
  )
  return at.map((second) => format.format(second * 1000))
}

function widestOf(plot: UPlot, values: readonly string[] | null): number {
  const longest = (values ?? []).reduce((most, text) => (text.length > most.length ? text : most), '')
  if (longest === '') return 0
  plot.ctx.font = `${11 * devicePixelRatio}px sans-serif`
  return Math.ceil(plot.ctx.measureText(longest).width / devicePixelRatio)
}
