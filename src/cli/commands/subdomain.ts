// `gamekeeper subdomain ls|add|rm|zones`
import type { Client, Subdomain, ZoneInfo } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, UsageError } from '../exit-codes.ts'
import { serverIdOf } from '../server-reference.ts'
import { type Column, formatFields, formatTable } from '../text.ts'
import { formatAgo } from '../units.ts'

const WAIT_MS = 60_000

const ls = command({
  summary: 'List the subdomains of a server, newest first',
  args: ['server'],
  options: {},
  examples: ['gamekeeper subdomain ls Castle', 'gamekeeper subdomain ls Castle --json'],
  async run(context, _options, { server }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const all = await Array.fromAsync(client.subdomains.all(serverId, { limit: 100 }, { signal: context.io.signal }))
    if (context.json) context.print(all)
    else if (all.length === 0) context.note('The server has no subdomains.')
    else context.say(formatTable(all, columnsFor(context), context.paint))
    return undefined
  },
})

const zones = command({
  summary: 'List the zones available for subdomains',
  args: ['server'],
  options: {},
  examples: ['gamekeeper subdomain zones Castle'],
  async run(context, _options, { server }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const { signal } = context.io
    const data = await Array.fromAsync(client.subdomains.allZones(serverId, { limit: 100 }, { signal }))
    if (context.json) context.print(data)
    else if (data.length === 0) context.note('The service has no zones. Set GAMEKEEPER_ZONES.')
    else context.say(formatTable(data, ZONE_COLUMNS, context.paint))
    return undefined
  },
})

const add = command({
  summary: 'Add a subdomain to a server',
  description: 'Waits until the name servers resolve it, for a minute at most; the service continues in any case.',
  args: ['server', 'name'],
  options: {
    zone: { type: 'string', value: 'ZONE', help: 'The zone; optional if there is only one' },
    'no-wait': { type: 'boolean', help: 'Return once the service has accepted it' },
  },
  examples: [
    'gamekeeper subdomain add Castle castle --zone play.example.org',
    'gamekeeper subdomain add Castle castle --no-wait',
  ],
  async run(context, options, { server, name }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const zone = options.zone ?? (await onlyZone(client, serverId, signal))
    const created = await client.subdomains.create(serverId, { name, zone }, { signal })
    const made = options['no-wait'] ? created : await untilAnswered(context, client, created)
    if (context.json) context.print(made)
    else context.say(describeSubdomain(context, made))
    return made.status === 'failed' ? EXIT.failed : undefined
  },
})

const rm = command({
  summary: 'Delete a subdomain and its DNS records',
  description: 'Give the subdomain as its name, its full name or its id.',
  args: ['server', 'subdomain'],
  options: { 'no-wait': { type: 'boolean', help: 'Do not wait for a provider slower than 5 seconds' } },
  examples: [
    'gamekeeper subdomain rm Castle castle',
    'gamekeeper subdomain rm Castle castle.play.example.org --no-wait',
  ],
  async run(context, options, { server, subdomain: reference }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const { id, hostname } = await findSubdomain(client, serverId, reference, signal)
    const left = await client.subdomains.delete(serverId, id, { signal })
    if (left && !options['no-wait']) {
      context.note(`${hostname} is being removed. ${left.reason?.detail ?? 'The DNS provider has not confirmed yet.'}`)
      await client.subdomains.waitUntilGone(serverId, id, { signal })
    }
    const gone = !left || !options['no-wait']
    if (context.json) context.print({ id, hostname, deleted: gone })
    else context.say(gone ? `Deleted ${hostname}.` : `${hostname} is being deleted.`)
    return undefined
  },
})

async function onlyZone(client: Client, serverId: string, signal: AbortSignal): Promise<string> {
  const data = await Array.fromAsync(client.subdomains.allZones(serverId, { limit: 100 }, { signal }))
  const [zone, ...others] = data
  if (zone && others.length === 0) return zone.zone
  const hint = zone ? `Zones: ${data.map((one) => one.zone).join(', ')}.` : 'The service has no zones.'
  throw new UsageError('--zone is missing.', hint)
}

async function untilAnswered(context: Context, client: Client, made: Subdomain): Promise<Subdomain> {
  const enough = AbortSignal.timeout(WAIT_MS)
  const signal = AbortSignal.any([context.io.signal, enough])
  try {
    return await client.subdomains.waitUntilAnswered(made.serverId, made.id, { signal })
  } catch (error) {
    if (!enough.aborted || context.io.signal.aborted) throw error
    context.note('The name servers do not resolve it yet; the service keeps checking.')
    return client.subdomains.read(made.serverId, made.id, { signal: context.io.signal })
  }
}

async function findSubdomain(
  client: Client,
  serverId: string,
  reference: string,
  signal: AbortSignal,
): Promise<Subdomain> {
  const wanted = reference.toLowerCase().replace(/\.$/, '')
  const found: Subdomain[] = []
  for await (const one of client.subdomains.all(serverId, { limit: 100 }, { signal })) {
    if ([one.id, one.hostname, one.name].includes(wanted)) found.push(one)
  }
  const [one, ...others] = found
  if (!one) throw new CommandError(`The server has no subdomain "${reference}".`, EXIT.notFound)
  if (others.length === 0) return one
  const names = found.map(({ hostname }) => hostname).join(', ')
  throw new CommandError(`"${reference}" is in several zones. Use the full name: ${names}`, EXIT.conflict)
}

const STYLES = { active: 'green', pending: 'yellow', withdrawn: 'yellow', deleting: 'yellow', failed: 'red' } as const

const columnsFor = ({ now }: Context): Column<Subdomain>[] => [
  { title: 'PLAYERS TYPE', cell: ({ connect }) => connect, style: () => 'cyan' },
  { title: 'ID', cell: ({ id }) => id },
  { title: 'STATUS', cell: ({ status }) => status, style: ({ status }) => STYLES[status] },
  { title: 'REASON', cell: ({ reason }) => reason?.code ?? '-' },
  { title: 'ANSWERED', cell: ({ propagatedAt }) => formatAgo(propagatedAt, now()) },
]

const ZONE_COLUMNS: Column<ZoneInfo>[] = [
  { title: 'ZONE', cell: ({ zone }) => zone, style: () => 'cyan' },
  { title: 'PROVIDER', cell: ({ provider }) => provider },
  { title: 'TARGET', cell: ({ targets }) => targets.join(', ') },
  { title: 'TTL', cell: ({ ttl }) => `${ttl} s`, right: true },
  { title: 'USED', cell: ({ used, limit }) => (limit === null ? String(used) : `${used} of ${limit}`), right: true },
]

function describeSubdomain({ paint, now }: Context, subdomain: Subdomain): string {
  const { connect, id, status, reason, records, propagatedAt } = subdomain
  return formatFields(
    {
      'Players type': connect,
      Id: id,
      Status: reason ? `${status}: ${reason.detail}` : status,
      Answered: propagatedAt === null ? 'not yet' : formatAgo(propagatedAt, now()),
      Records: records.map(({ name, type, values }) => `${name} ${type} ${values.join(' and ')}`).join('; '),
    },
    paint,
  )
}

export const subdomain: Family = { subcommands: { ls, add, rm, zones } }
