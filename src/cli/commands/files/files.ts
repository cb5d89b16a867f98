// `gamekeeper files …`: the files of a server. Paths are those of the server, "/" being its top.
import type { Client, FileEntry } from '../../../sdk/index.ts'
import { command, type Family } from '../../command.ts'
import type { Context } from '../../context.ts'
import { EXIT, UsageError } from '../../exit-codes.ts'
import { serverIdOf, take } from '../../server-reference.ts'
import { type Column, formatFields, formatTable, safe } from '../../text.ts'
import { formatAgo, formatSize, readWhole } from '../../units.ts'
import { get } from './files-get.ts'
import { pack, pull, unpack } from './files-jobs.ts'
import { put } from './files-put.ts'
import { cat, edit } from './files-text.ts'
import { trash, undo } from './files-trash.ts'

const SORTS = ['name', 'size', 'time'] as const

const ls = command({
  summary: 'List a directory, directories first',
  args: ['server', 'path?'],
  options: {
    sort: { type: 'string', value: 'KEY', help: `By ${SORTS.join(', ')}; name by default` },
    reverse: { type: 'boolean', short: 'r', help: 'Reverse the order' },
    limit: { type: 'string', value: 'N', help: 'At most this many; all by default' },
  },
  examples: ['gamekeeper files ls Castle', 'gamekeeper files ls Castle /world/region --sort time --reverse --limit 10'],
  async run(context, options, { server, path = '/' }) {
    const limit = options.limit === undefined ? Number.POSITIVE_INFINITY : readWhole(options.limit, '--limit')
    const sort = SORTS.find((known) => known === (options.sort ?? 'name'))
    if (!sort) throw new UsageError(`--sort must be one of ${SORTS.join(', ')}.`)
    const { client, serverId, signal } = await open(context, server)
    const query = {
      path,
      sort,
      order: options.reverse ? 'desc' : 'asc',
      limit: Math.min(100, Math.max(1, limit)),
    } as const
    const entries = await take(client.files.all(serverId, query, { signal }), limit)
    if (context.json) context.print(entries)
    else if (entries.length === 0) context.note('The directory is empty.')
    else context.say(formatTable(entries, columnsFor(context), context.paint))
    return undefined
  },
})

const columnsFor = ({ now }: Context): Column<FileEntry>[] => [
  { title: 'MODE', cell: ({ mode }) => mode },
  { title: 'SIZE', cell: ({ kind, sizeBytes }) => (kind === 'file' ? formatSize(sizeBytes) : '-'), right: true },
  { title: 'CHANGED', cell: ({ modifiedAt }) => formatAgo(modifiedAt, now()) },
  { title: 'NAME', cell: nameOf, style: ({ kind }) => (kind === 'directory' ? 'cyan' : undefined) },
]

function nameOf({ name, kind, symlinkTarget }: FileEntry): string {
  if (kind === 'directory') return `${name}/`
  return kind === 'symlink' ? `${name} -> ${symlinkTarget}` : name
}

const rm = command({
  summary: 'Delete files and directories; "undo" brings them back',
  description: 'They go to the trash, instantly whatever their size. Exits with 4 if any of them was not there.',
  args: ['server', 'path...'],
  options: {},
  examples: ['gamekeeper files rm Castle /logs/latest.log /crash-reports', 'gamekeeper files rm Castle /world --json'],
  async run(context, _options, { server, path: paths }) {
    const { client, serverId, signal } = await open(context, server)
    const names = new Map(paths.map((path) => [relative(path), path]))
    const { deleted, missing } = await client.files.delete(serverId, { files: [...names.keys()] }, { signal })
    const pathOf = (name: string) => names.get(name) ?? name
    if (context.json) context.print({ deleted: deleted.map(pathOf), missing: missing.map(pathOf) })
    for (const name of deleted) context.say(`Deleted ${safe(pathOf(name))}`)
    for (const name of missing) context.note(`There is no ${safe(pathOf(name))}`)
    return missing.length > 0 ? EXIT.notFound : EXIT.ok
  },
})

const relative = (path: string) => path.replace(/^\/+|\/+$/g, '')

const OVERWRITE = { type: 'boolean', help: 'Replace what is there; it goes to the trash' } as const

const mv = command({
  summary: 'Move or rename a file or a directory',
  description: 'A target that ends in a slash is a directory to move into.',
  args: ['server', 'from', 'to'],
  options: { overwrite: OVERWRITE },
  examples: [
    'gamekeeper files mv Castle /world /world-old',
    'gamekeeper files mv Castle /plugins/map.jar /plugins-off/',
  ],
  async run(context, { overwrite = false }, { server, from, to }) {
    const { client, serverId, signal } = await open(context, server)
    const moves = [{ from, to: targetOf(from, to) }]
    const { data } = await client.files.move(serverId, { moves, overwrite }, { signal })
    present(context, data[0], 'Moved to')
    return undefined
  },
})

const cp = command({
  summary: 'Copy a file or a directory',
  description:
    'Without a target the copy lies beside, as "level copy.dat". A target that ends in a slash is a directory.',
  args: ['server', 'from', 'to?'],
  options: { overwrite: OVERWRITE },
  examples: ['gamekeeper files cp Castle /server.properties', 'gamekeeper files cp Castle /world /old/world'],
  async run(context, { overwrite = false }, { server, from, to }) {
    const { client, serverId, signal } = await open(context, server)
    const copy = await client.files.copy(serverId, { location: from }, { signal })
    const entry = to === undefined ? copy : await moveCopy(client, serverId, copy, targetOf(from, to), overwrite)
    present(context, entry, 'Copied to')
    return undefined
  },
})

/** A copy that cannot go where it was meant to go is not left lying about. Not interrupted half-way for the same reason. */
async function moveCopy(client: Client, serverId: string, copy: FileEntry, to: string, overwrite: boolean) {
  try {
    return (await client.files.move(serverId, { moves: [{ from: copy.path, to }], overwrite })).data[0]
  } catch (error) {
    await client.files.delete(serverId, { files: [copy.path.slice(1)] }).catch(() => {})
    throw error
  }
}

const targetOf = (from: string, to: string) =>
  to.endsWith('/') ? to + from.slice(from.replace(/\/+$/, '').lastIndexOf('/') + 1) : to

const chmod = command({
  summary: 'Change the mode of files and directories',
  description:
    'MODE is three octal digits, with or without a 0 in front. A directory is changed itself, not what it holds. When one of\n' +
    'them cannot be changed, none is.',
  args: ['server', 'mode', 'path...'],
  options: {},
  examples: [
    'gamekeeper files chmod Castle 755 /start.sh',
    'gamekeeper files chmod Castle 0640 /ops.json /whitelist.json',
  ],
  async run(context, _options, { server, mode, path: paths }) {
    if (!/^0?[0-7]{3}$/.test(mode))
      throw new UsageError(`${JSON.stringify(mode)} is not a mode: three octal digits, such as 755 or 0644.`)
    const { client, serverId, signal } = await open(context, server)
    const { data } = await client.files.setMode(serverId, { files: paths.map(relative), mode }, { signal })
    if (context.json) context.print(data)
    for (const entry of data) context.say(`${entry.mode} ${safe(entry.path)}`)
    return undefined
  },
})

const mkdir = command({
  summary: 'Create a directory and its parents',
  args: ['server', 'path'],
  options: {},
  examples: ['gamekeeper files mkdir Castle /plugins/disabled'],
  async run(context, _options, { server, path }) {
    const { client, serverId, signal } = await open(context, server)
    const [, above = '', name = ''] = /^(.*?)([^/]*)\/*$/.exec(path) ?? []
    present(context, await client.files.makeFolder(serverId, { name, path: above || '/' }, { signal }), 'There is')
    return undefined
  },
})

const find = command({
  summary: 'Search for files by name or content',
  args: ['server', 'text'],
  options: {
    path: { type: 'string', value: 'PATH', help: 'Only below this directory' },
    content: { type: 'boolean', help: 'Search in the files too' },
    limit: { type: 'string', value: 'N', help: 'At most this many, up to 100; 50 by default' },
  },
  examples: ['gamekeeper files find Castle .jar --path /plugins', 'gamekeeper files find Castle level-name --content'],
  async run(context, options, { server, text }) {
    const { client, serverId, signal } = await open(context, server)
    const query = {
      q: text,
      content: options.content ?? false,
      ...(options.path ? { path: options.path } : {}),
      ...(options.limit ? { limit: readWhole(options.limit, '--limit') } : {}),
    }
    const found = await client.files.search(serverId, query, { signal })
    if (context.json) context.print(found)
    for (const { path, lineNumber, line } of found.data) {
      context.say(safe(lineNumber === null ? path : `${path}:${lineNumber}: ${line}`))
    }
    if (found.data.length === 0) context.note('Nothing was found.')
    else if (!found.isComplete) context.note('There may be more; narrow it down with --path, or raise --limit.')
    return undefined
  },
})

const usage = command({
  summary: 'Show how much disk a server uses',
  args: ['server'],
  options: {},
  examples: ['gamekeeper files usage Castle'],
  async run(context, _options, { server }) {
    const { client, serverId, signal } = await open(context, server)
    const now = await client.files.usage(serverId, { signal })
    if (context.json) context.print(now)
    else {
      const fields = {
        Used: formatSize(now.usedBytes),
        'Of it, trash': formatSize(now.trashBytes),
        'Being written': formatSize(now.reservedBytes),
        Quota: now.quotaBytes === null ? 'no limit' : formatSize(now.quotaBytes),
        'Files and folders':
          now.maxEntries === null ? String(now.usedEntries) : `${now.usedEntries} of ${now.maxEntries}`,
      }
      context.say(formatFields(fields, context.paint))
    }
    return undefined
  },
})

function present(context: Context, entry: FileEntry | undefined, what: string): void {
  if (context.json) context.print(entry)
  else context.say(`${what} ${safe(entry?.path ?? '')}`)
}

async function open(context: Context, server: string) {
  const client = context.client()
  const { signal } = context.io
  return { client, signal, serverId: await serverIdOf(client, server, signal) }
}

export const files: Family = {
  subcommands: { ls, cat, edit, get, put, rm, mv, cp, chmod, mkdir, trash, undo, find, pack, unpack, pull, usage },
}
