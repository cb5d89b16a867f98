// The common times as choices; whatever else a schedule says stays as it was written.

export type CronChoice =
  | { kind: 'hourly'; minute: number }
  | { kind: 'daily'; time: string }
  | { kind: 'weekly'; time: string; weekday: number }
  | { kind: 'custom'; cron: string }

export function cronOf(choice: CronChoice): string {
  if (choice.kind === 'custom') return choice.cron.trim()
  if (choice.kind === 'hourly') return `${choice.minute} * * * *`
  const [hour, minute] = choice.time.split(':').map(Number)
  return `${minute} ${hour} * * ${choice.kind === 'weekly' ? choice.weekday : '*'}`
}

export function choiceOf(cron: string): CronChoice {
  const hourly = /^(\d{1,2}) \* \* \* \*$/.exec(cron)
  if (hourly) return { kind: 'hourly', minute: Number(hourly[1]) }
  const [, minute = '', hour = '', weekday = ''] = /^(\d{1,2}) (\d{1,2}) \* \* (\*|[0-6])$/.exec(cron) ?? []
  if (minute === '') return { kind: 'custom', cron }
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`
  return weekday === '*' ? { kind: 'daily', time } : { kind: 'weekly', time, weekday: Number(weekday) }
}

/** Of another kind, with what the two have in common. */
export function withKind(choice: CronChoice, kind: CronChoice['kind']): CronChoice {
  const time = 'time' in choice ? choice.time : '04:00'
  if (kind === 'hourly') return { kind, minute: 0 }
  if (kind === 'daily') return { kind, time }
  if (kind === 'weekly') return { kind, time, weekday: 0 }
  return { kind, cron: cronOf(choice) }
}
