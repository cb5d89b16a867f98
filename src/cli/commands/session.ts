// `gamekeeper session ls|end`
import type { Session } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { type Column, formatTable } from '../text.ts'
import { formatAgo } from '../units.ts'

const OF_TOKEN = {
  type: 'string',
  value: 'TOKEN',
  help: 'The id of a token; the one that this command uses by default',
} as const

const ls = command({
  summary: 'List where a token is signed in to the panel, newest first',
  args: [],
  options: { of: OF_TOKEN },
  examples: ['gamekeeper session ls', 'gamekeeper session ls --of tok_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, { of: token }) {
    const { sessions } = context.client()
    const options = { signal: context.io.signal }
    const query = { limit: 100 }
    const found = await Array.fromAsync(
      token === undefined ? sessions.all(query, options) : sessions.allOf(token, query, options),
    )
    if (context.json) context.print(found)
    else if (found.length === 0) context.note('Nobody is signed in with it.')
    else context.say(formatTable(found, columnsFor(context), context.paint))
    return undefined
  },
})

const end = command({
  summary: 'Sign out from elsewhere',
  description:
    'The token stays good. Whoever came by an invitation does not know its value, and needs another invitation.',
  args: ['session*'],
  options: { of: OF_TOKEN, all: { type: 'boolean', help: 'All sessions of the token' } },
  examples: ['gamekeeper session end ses_01k9zq6m3t8v5w2x7y4c1b6d9e', 'gamekeeper session end --all'],
  async run(context, { of: token, all = false }, { session: ids }) {
    if (all === ids.length > 0) throw new UsageError('Name sessions, or use --all.')
    const { sessions } = context.client()
    const options = { signal: context.io.signal }
    if (all) {
      const { ended } = await (token === undefined ? sessions.endOthers(options) : sessions.endAllOf(token, options))
      if (context.json) context.print({ ended })
      else context.say(`Ended ${ended}.`)
      return undefined
    }
    for (const id of ids) {
      await (token === undefined ? sessions.end(id, options) : sessions.endOf(token, id, options))
      context.say(`Ended ${id}.`)
    }
    if (context.json) context.print({ ended: ids.length })
    return undefined
  },
})

const columnsFor = ({ now }: Context): Column<Session>[] => [
  { title: 'ID', cell: ({ id }) => id, style: () => 'cyan' },
  { title: 'LAST SEEN', cell: ({ lastUsedAt }) => formatAgo(lastUsedAt, now()) },
  { title: 'SIGNED IN', cell: ({ createdAt }) => formatAgo(createdAt, now()) },
  { title: 'FROM', cell: ({ ip }) => ip ?? '-' },
  { title: 'BROWSER', cell: ({ userAgent }) => userAgent ?? '-' },
]

export const session: Family = { subcommands: { ls, end } }
