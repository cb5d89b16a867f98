// `gamekeeper backup keep`: which backups stay.
import { command, type Options, type ValuesOf } from '../../command.ts'
import type { Context } from '../../context.ts'
import { serverIdOf } from '../../server-reference.ts'
import { formatFields } from '../../text.ts'
import { orNone, readWhole } from '../../units.ts'

const RULES = {
  last: { type: 'string', value: 'N', help: 'Keep the newest N; "none" removes a rule' },
  hourly: { type: 'string', value: 'N', help: 'Keep the newest of each of N hours' },
  daily: { type: 'string', value: 'N', help: 'Keep the newest of each of N days' },
  weekly: { type: 'string', value: 'N', help: 'Keep the newest of each of N weeks' },
  monthly: { type: 'string', value: 'N', help: 'Keep the newest of each of N months' },
} as const satisfies Options

export const keep = command({
  summary: 'Show or set the retention rules of a server',
  description: 'Rules you do not give stay as they are. Locked backups are always kept. Applied after each backup.',
  args: ['server'],
  options: {
    ...RULES,
    'dry-run': { type: 'boolean', help: 'Show what the current rules would delete' },
    apply: { type: 'boolean', help: 'Apply the rules now' },
  },
  examples: ['gamekeeper backup keep Castle --last 5 --daily 7 --weekly 4', 'gamekeeper backup keep Castle --dry-run'],
  async run(context, options, { server }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const before = await client.backups.readRetention(serverId, { signal })
    const changes = rulesOf(options)
    const isChange = Object.keys(changes).length > 0
    const policy = isChange
      ? await client.backups.setRetention(serverId, { ...before, ...changes }, { signal })
      : before
    const asked = options.apply || options['dry-run']
    const expiry = asked ? await client.backups.applyRetention(serverId, !options.apply, { signal }) : null
    if (context.json) context.print(expiry ?? policy)
    else if (expiry) sayExpiry(context, expiry)
    else context.say(formatFields(fieldsOf(policy), context.paint))
    return undefined
  },
})

function rulesOf(options: ValuesOf<typeof RULES>) {
  const rules = {
    keepLast: orNone(options.last, (text) => readWhole(text, '--last')),
    keepHourly: orNone(options.hourly, (text) => readWhole(text, '--hourly')),
    keepDaily: orNone(options.daily, (text) => readWhole(text, '--daily')),
    keepWeekly: orNone(options.weekly, (text) => readWhole(text, '--weekly')),
    keepMonthly: orNone(options.monthly, (text) => readWhole(text, '--monthly')),
  }
  return Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined)) as {
    [K in keyof typeof rules]?: number | null
  }
}

const fieldsOf = (policy: Record<string, number | null>) =>
  Object.fromEntries(Object.entries(policy).map(([rule, count]) => [rule.replace('keep', ''), String(count ?? '-')]))

function sayExpiry(
  context: Context,
  { dryRun, expired, keptCount }: { dryRun: boolean; expired: { id: string; name: string }[]; keptCount: number },
): void {
  for (const { id, name } of expired) context.say(`${id}  ${name}`)
  context.say(`${expired.length} ${dryRun ? 'would be' : 'were'} deleted, ${keptCount} kept.`)
}
