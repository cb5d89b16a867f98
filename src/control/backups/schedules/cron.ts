// When a schedule runs, and what it calls its backups. Pure.
import { Cron } from 'croner'
import { fail } from '../../../contract/errors.ts'

const NAME_MAX = 191
const PLACEHOLDER = /\{(\w*)\}/g
const KNOWN = new Set(['date', 'time', 'zone', 'server'])

/** The first time after `after`; null if there is none. */
export function nextRun(cron: string, timeZone: string, after: number): number | null {
  return parse(cron, timeZone).nextRun(new Date(after))?.getTime() ?? null
}

/** Throws with every field at fault named. */
export function checkSchedule({
  cron,
  timeZone,
  namePattern,
}: {
  cron: string
  timeZone: string
  namePattern: string
}) {
  const errors = [
    ...(isTimeZone(timeZone) ? [] : [{ path: '/timeZone', message: 'is not a time zone that is known here' }]),
    ...cronFault(cron),
    ...[...namePattern.matchAll(PLACEHOLDER)]
      .filter(([, name = '']) => !KNOWN.has(name))
      .map(([text]) => ({ path: '/namePattern', message: `has the unknown placeholder ${text}` })),
  ]
  if (errors.length > 0) throw fail('invalid_request', { detail: 'The schedule is not valid.', errors })
}

export function nameFor(pattern: string, at: number, timeZone: string, serverName: string): string {
  const { date, time } = clockIn(timeZone, at)
  const values: Record<string, string> = { date, time, zone: timeZone, server: serverName }
  const name = pattern.replace(PLACEHOLDER, (text, key: string) => values[key] ?? text)
  return name.slice(0, NAME_MAX).toWellFormed()
}

function clockIn(timeZone: string, at: number): { date: string; time: string } {
  const [date = '', time = ''] = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
    .format(at)
    .split(' ')
  return { date, time }
}

const parse = (cron: string, timeZone: string) => new Cron(cron, { timezone: timeZone, mode: '5-part', paused: true })

function cronFault(cron: string): { path: string; message: string }[] {
  try {
    if (parse(cron, 'UTC').nextRun() !== null) return []
    return [{ path: '/cron', message: 'never comes' }]
  } catch {
    return [{ path: '/cron', message: 'is not a cron expression of five fields' }]
  }
}

function isTimeZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone })
    return true
  } catch {
    return false
  }
}
