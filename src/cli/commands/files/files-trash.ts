// `gamekeeper files trash|undo`: what was deleted or replaced, and having it back.
import type { Client, TrashItem } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { CommandError, EXIT, UsageError } from '../../exit-codes.ts'
import { serverIdOf, take } from '../../server-reference.ts'
import { type Column, formatTable, safe } from '../../text.ts'
import { formatAgo, formatSize, readWhole } from '../../units.ts'

export const trash = command({
  summary: 'List deleted and replaced files, newest first, or empty the trash',
  description: '"replaced" marks an older version of a file that still exists.',
  args: ['server'],
  options: {
    limit: { type: 'string', value: 'N', help: 'At most this many; all by default' },
    empty: { type: 'boolean', help: 'Empty the trash for good; asks first' },
    yes: { type: 'boolean', short: 'y', help: 'Do not ask' },
  },
  examples: ['gamekeeper files trash Castle', 'gamekeeper files trash Castle --empty --yes'],
  async run(context, options, { server }) {
    const client = context.client()
    const { signal } = context.io
    if (options.empty) await confirmEmptying(context, options.yes ?? false)
    const serverId = await serverIdOf(client, server, signal)
    if (options.empty) {
      const freed = await client.files.emptyTrash(serverId, { signal })
      if (context.json) context.print(freed)
      else context.say(`Freed ${formatSize(freed.freedBytes)}.`)
      return undefined
    }
    const limit = options.limit === undefined ? Number.POSITIVE_INFINITY : readWhole(options.limit, '--limit')
    const items = await take(client.files.allTrash(serverId, { limit: 100 }, { signal }), limit)
    if (context.json) context.print(items)
    else if (items.length === 0) context.note('The trash is empty.')
    else context.say(formatTable(items, columnsFor(context), context.paint))
    return undefined
  },
})

async function confirmEmptying(context: Context, isSure: boolean): Promise<void> {
  if (isSure) return
  if (!context.canAsk) throw new UsageError('Emptying the trash needs --yes.')
  const answer = await context.ask('What is in the trash cannot be brought back then. Type yes to go on: ')
  if (answer.trim() !== 'yes') throw new CommandError('Nothing was emptied.')
}

const columnsFor = ({ now }: Context): Column<TrashItem>[] => [
  { title: 'ITEM', cell: ({ id }) => id },
  { title: 'WHEN', cell: ({ deletedAt }) => formatAgo(deletedAt, now()) },
  { title: 'WHY', cell: ({ reason }) => reason },
  { title: 'KEPT', cell: ({ expiresAt }) => formatAgo(expiresAt, now()) },
  { title: 'PATH', cell: ({ path, kind }) => (kind === 'directory' ? `${path}/` : path), style: () => 'cyan' },
]

export const undo = command({
  summary: 'Restore what was deleted',
  description:
    'Without an item, all that the last "rm" has deleted. An item is named by its id or its path, of which the newest\n' +
    'counts. What has its name taken meanwhile comes back under a free one, or with --replace under its own.',
  args: ['server', 'item*'],
  options: { replace: { type: 'boolean', help: 'Replace what has its name now, moving that to the trash' } },
  examples: ['gamekeeper files undo Castle', 'gamekeeper files undo Castle /world/level.dat --replace'],
  async run(context, { replace = false }, { server, item: wanted }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const items = await Array.fromAsync(client.files.allTrash(serverId, { limit: 100 }, { signal }))
    const restored = []
    for (const { id, path } of wanted.length > 0 ? wanted.map((name) => named(items, name)) : lastDeleted(items)) {
      const back = await client.files.restore(serverId, id, { signal })
      const entry = replace && back.path !== path ? await moveOver(client, serverId, back.path, path) : back
      restored.push({ item: id, path: entry.path })
      context.say(entry.path === path ? `Restored ${safe(path)}` : `Restored ${safe(path)} as ${safe(entry.path)}`)
    }
    if (context.json) context.print({ restored })
    return undefined
  },
})

/** Not interrupted: it would stay under the free name. Killed here it does so too, and nothing is lost. */
async function moveOver(client: Client, serverId: string, from: string, to: string): Promise<{ path: string }> {
  const { data } = await client.files.move(serverId, { moves: [{ from, to }], overwrite: true })
  return { path: data[0]?.path ?? to }
}

function named(items: readonly TrashItem[], name: string): TrashItem {
  const path = `/${name.replace(/^\/+|\/+$/g, '')}`
  const item = items.find((each) => each.id === name) ?? items.find((each) => each.path === path)
  if (!item) throw new CommandError(`There is no ${JSON.stringify(name)} in the trash.`, EXIT.notFound)
  return item
}

/** What one request has deleted has one time. */
function lastDeleted(items: readonly TrashItem[]): TrashItem[] {
  const last = items.find(({ reason }) => reason === 'deleted')
  if (!last) throw new CommandError('There is nothing to restore.', EXIT.notFound)
  return items.filter(({ reason, deletedAt }) => reason === 'deleted' && deletedAt === last.deletedAt)
}
