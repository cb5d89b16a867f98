// Sizes and times as people write and read them.
import { parseSize } from '../contract/sizes.ts'
import { UsageError } from './exit-codes.ts'

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

export function formatSize(bytes: number): string {
  let power = 0
  let value = bytes
  while (value >= 1024 && power < UNITS.length - 1) {
    value /= 1024
    power++
  }
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`
}

export function readSize(text: string, option: string): number {
  const bytes = parseSize(text)
  if (bytes === undefined) throw new UsageError(`${option} must be a size such as 20GiB or 500MB, not "${text}".`)
  return bytes
}

const DURATIONS = { s: 1000, m: 60_000, h: 3600_000, d: 86_400_000, w: 604_800_000 } as const
const DURATION = /^(\d+)(s|m|h|d|w)$/

/** A time such as `2026-11-15` or `2026-11-15T12:00:00Z`, or a span such as `2h` from now, in the direction that is meant. */
export function readTime(text: string, option: string, direction: 'past' | 'future', now: number): string {
  const [, count, unit] = DURATION.exec(text) ?? []
  if (count && unit) {
    const span = Number(count) * DURATIONS[unit as keyof typeof DURATIONS]
    return new Date(direction === 'past' ? now - span : now + span).toISOString()
  }
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at))
    throw new UsageError(`${option} must be a time such as 2026-11-15T12:00:00Z or a duration such as 2h.`)
  return new Date(at).toISOString()
}

export function formatTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}

const STEPS = [
  [60, 'second', 1],
  [3600, 'minute', 60],
  [86_400, 'hour', 3600],
  [30 * 86_400, 'day', 86_400],
  [365 * 86_400, 'month', 30 * 86_400],
  [Number.POSITIVE_INFINITY, 'year', 365 * 86_400],
] as const

export function formatAgo(iso: string | null, now: number): string {
  if (iso === null) return 'never'
  const seconds = Math.round((now - Date.parse(iso)) / 1000)
  const [, unit, size] = STEPS.find(([below]) => Math.abs(seconds) < below) ?? STEPS[5]
  const count = Math.floor(Math.abs(seconds) / size)
  if (count === 0) return 'now'
  const text = `${count} ${unit}${count === 1 ? '' : 's'}`
  return seconds > 0 ? `${text} ago` : `in ${text}`
}

export function readWhole(text: string, option: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${option} must be a whole number, not "${text}".`)
  return Number(text)
}

/** `none` takes a setting away. */
export function orNone<T>(text: string | undefined, read: (text: string) => T): T | null | undefined {
  return text === undefined ? undefined : text === 'none' ? null : read(text)
}
