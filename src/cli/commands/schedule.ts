// `gamekeeper schedule add|ls|set|rm`: backups that are made by themselves.
import type { Schedule } from '../../sdk/index.ts'
import { command, type Family, type Options, type ValuesOf } from '../command.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { scheduleIdOf } from '../references.ts'
import { serverIdOf } from '../server-reference.ts'
import { type Column, formatTable } from '../text.ts'
import { formatAgo } from '../units.ts'

const SETTINGS = {
  zone: { type: 'string', value: 'ZONE', help: 'The time zone, such as Europe/Berlin; UTC by default' },
  pattern: {
    type: 'string',
    value: 'TEXT',
    help: 'Name of its backups; {date} {time} {zone} {server} are filled in',
  },
  ignore: { type: 'string', multiple: true, value: 'PATTERN', help: 'What to exclude; may be repeated' },
  lock: { type: 'string', value: 'yes|no', help: 'Whether its backups are locked' },
  'if-changed': { type: 'string', value: 'yes|no', help: 'Whether to skip the backup if nothing has changed' },
  enabled: { type: 'string', value: 'yes|no', help: 'Whether it is enabled' },
  action: {
    type: 'string',
    value: 'backup|rehearse',
    help: 'Make a backup, or rehearse the newest; backup by default',
  },
} as const satisfies Options

const add = command({
  summary: 'Add a schedule to a server',
  description: 'CRON has five fields: minute, hour, day of the month, month, day of the week.',
  args: ['server', 'name', 'cron'],
  options: SETTINGS,
  examples: [
    'gamekeeper schedule add Castle Nightly "0 4 * * *" --zone Europe/Berlin --if-changed yes',
    'gamekeeper schedule add Castle "Weekly rehearsal" "0 5 * * 0" --action rehearse',
  ],
  async run(context, options, { server, name, cron }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const body = { name, cron, ...settingsOf(options) }
    present(context, [await client.backups.createSchedule(serverId, body, { signal: context.io.signal })])
    return undefined
  },
})

const ls = command({
  summary: 'List the schedules of a server',
  args: ['server'],
  options: {},
  examples: ['gamekeeper schedule ls Castle'],
  async run(context, _options, { server }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const { signal } = context.io
    const data = await Array.fromAsync(client.backups.allSchedules(serverId, { limit: 100 }, { signal }))
    if (data.length === 0 && !context.json) context.note('There are no schedules.')
    else present(context, data)
    return undefined
  },
})

const set = command({
  summary: 'Change a schedule',
  args: ['server', 'schedule'],
  options: {
    name: { type: 'string', value: 'NAME', help: 'A new name' },
    cron: { type: 'string', value: 'CRON', help: 'When it runs' },
    ...SETTINGS,
  },
  examples: ['gamekeeper schedule set Castle Nightly --enabled no'],
  async run(context, options, { server, schedule: reference }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const scheduleId = await scheduleIdOf(context, client, serverId, reference)
    const { name, cron } = options
    const body = {
      ...(name === undefined ? {} : { name }),
      ...(cron === undefined ? {} : { cron }),
      ...settingsOf(options),
    }
    if (Object.keys(body).length === 0) throw new UsageError('Nothing to change was given.')
    present(context, [await client.backups.changeSchedule(serverId, scheduleId, body, { signal: context.io.signal })])
    return undefined
  },
})

const rm = command({
  summary: 'Delete a schedule; its backups stay',
  args: ['server', 'schedule'],
  options: {},
  examples: ['gamekeeper schedule rm Castle Nightly'],
  async run(context, _options, { server, schedule: reference }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const scheduleId = await scheduleIdOf(context, client, serverId, reference)
    await client.backups.deleteSchedule(serverId, scheduleId, { signal: context.io.signal })
    if (context.json) context.print({ deleted: scheduleId })
    else context.say(`Deleted ${scheduleId}.`)
    return undefined
  },
})

function settingsOf(options: ValuesOf<typeof SETTINGS>) {
  return {
    ...(options.zone === undefined ? {} : { timeZone: options.zone }),
    ...(options.pattern === undefined ? {} : { namePattern: options.pattern }),
    ...(options.ignore === undefined ? {} : { ignored: options.ignore.join('\n') }),
    ...(options.lock === undefined ? {} : { isLocked: yesOrNo(options.lock, '--lock') }),
    ...(options['if-changed'] === undefined ? {} : { onlyIfChanged: yesOrNo(options['if-changed'], '--if-changed') }),
    ...(options.enabled === undefined ? {} : { isEnabled: yesOrNo(options.enabled, '--enabled') }),
    ...(options.action === undefined ? {} : { action: actionOf(options.action) }),
  }
}

function actionOf(text: string): Schedule['action'] {
  if (text !== 'backup' && text !== 'rehearse') throw new UsageError('--action must be backup or rehearse.')
  return text
}

function yesOrNo(text: string, option: string): boolean {
  if (text !== 'yes' && text !== 'no') throw new UsageError(`${option} must be yes or no.`)
  return text === 'yes'
}

function present(context: Context, schedules: Schedule[]): void {
  if (context.json) context.print(schedules)
  else context.say(formatTable(schedules, columnsFor(context), context.paint))
}

const columnsFor = ({ now }: Context): Column<Schedule>[] => [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'NAME', cell: ({ name }) => name, style: () => 'cyan' },
  { title: 'CRON', cell: ({ cron }) => cron },
  { title: 'ZONE', cell: ({ timeZone }) => timeZone },
  { title: 'NEXT', cell: ({ nextRunAt }) => (nextRunAt === null ? 'off' : formatAgo(nextRunAt, now())) },
  {
    title: 'LAST',
    cell: ({ lastRunAt, lastOutcome }) => (lastRunAt ? `${formatAgo(lastRunAt, now())}: ${lastOutcome}` : '-'),
  },
]

export const schedule: Family = { subcommands: { add, ls, set, rm } }
