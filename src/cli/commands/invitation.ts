// `gamekeeper invitation create|ls|rm`
import { SCOPES } from '../../contract/scopes.ts'
import type { Invitation } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { readGrant } from '../grants.ts'
import { type Column, formatTable } from '../text.ts'
import { formatAgo, formatTime } from '../units.ts'

const create = command({
  summary: 'Invite somebody to the panel',
  description:
    'Only the link is printed to standard output, once. It works once within 24 hours, and becomes a token of that name.\n' +
    `Scopes: ${SCOPES.join(', ')}.`,
  args: ['name'],
  options: {
    scope: {
      type: 'string',
      multiple: true,
      value: 'SCOPE',
      help: 'What they may do; may be repeated or comma-separated',
    },
    server: { type: 'string', multiple: true, value: 'SERVER', help: 'A server they may access; all by default' },
  },
  examples: ['gamekeeper invitation create Anna --scope servers:read,console:read,console:write --server Castle'],
  async run(context, options, { name }) {
    const body = { name, ...(await readGrant(context, options)) }
    const made = await context.client().invitations.create(body, { signal: context.io.signal })
    if (context.json) context.print(made)
    context.note(`${made.id} works once, until ${formatTime(made.expiresAt)}. Its link is shown only once:`)
    context.say(made.url)
    return undefined
  },
})

const ls = command({
  summary: 'List invitations that can still be used, newest first',
  args: [],
  options: {},
  examples: ['gamekeeper invitation ls', 'gamekeeper invitation ls --json'],
  async run(context) {
    const { signal } = context.io
    const open = await Array.fromAsync(context.client().invitations.all({ limit: 100 }, { signal }))
    if (context.json) context.print(open)
    else context.say(formatTable(open, columnsFor(context), context.paint))
    return undefined
  },
})

const rm = command({
  summary: 'Take invitations back',
  args: ['invitations...'],
  options: {},
  examples: ['gamekeeper invitation rm inv_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, _options, { invitations }) {
    const client = context.client()
    for (const id of invitations) {
      await client.invitations.revoke(id, { signal: context.io.signal })
      context.say(`Took ${id} back.`)
    }
    if (context.json) context.print({ revoked: invitations })
    return undefined
  },
})

const columnsFor = ({ now }: Context): Column<Invitation>[] => [
  { title: 'NAME', cell: ({ name }) => name, style: () => 'cyan' },
  { title: 'ID', cell: ({ id }) => id },
  { title: 'SCOPES', cell: ({ scopes }) => scopes.join(',') },
  { title: 'SERVERS', cell: ({ servers }) => (servers === '*' ? 'all' : String(servers.length)), right: true },
  { title: 'EXPIRES', cell: ({ expiresAt }) => formatAgo(expiresAt, now()) },
]

export const invitation: Family = { subcommands: { create, ls, rm } }
