// Numbers and times as the reader writes them, in the reader's zone.

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]

/** "5 minutes ago"; anything under 45 seconds is "now". */
export function relativeTime(at: Date, now: Date, locale: string): string {
  const seconds = (at.getTime() - now.getTime()) / 1000
  const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  if (Math.abs(seconds) < 45) return format.format(0, 'second')
  for (const [unit, size] of STEPS) {
    const count = Math.round(seconds / size)
    if (Math.abs(seconds) >= size * 0.99 && count !== 0) return format.format(count, unit)
  }
  return format.format(Math.sign(seconds), 'minute')
}

export function exactTime(at: Date, locale: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'long' }).format(at)
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

export function formatBytes(bytes: number, locale: string): string {
  const step = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** step
  const digits = step === 0 || value >= 100 ? 0 : 1
  return `${new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value)} ${UNITS[step]}`
}

export const formatCount = (count: number, locale: string) => new Intl.NumberFormat(locale).format(count)

/** "13:05:20", in the viewer's zone. */
export function clockTime(at: Date, locale: string): string {
  return new Intl.DateTimeFormat(locale, { timeStyle: 'medium' }).format(at)
}

/** "16 Nov 2026, 13:05" */
export function shortTime(at: Date, locale: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(at)
}
