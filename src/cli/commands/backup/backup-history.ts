// `gamekeeper backup versions|compare`: what a file was in each backup, and what changed from one backup to another.
import type { BackupChange, FileVersion } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { backupIdOf } from '../../references.ts'
import { serverIdOf, take } from '../../server-reference.ts'
import { type Column, formatTable, type Style } from '../../text.ts'
import { formatAgo, formatSize, formatTime, readWhole } from '../../units.ts'

export const versions = command({
  summary: 'List the versions of a file in backups, newest first',
  description: 'Backups with the same VERSION hold the same content.',
  args: ['server', 'path'],
  options: {},
  examples: ['gamekeeper backup versions Castle /world/level.dat'],
  async run(context, _options, { server, path }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const data = await Array.fromAsync(client.backups.allVersions(serverId, { path, limit: 100 }, { signal }))
    if (context.json) context.print(data)
    else if (data.length === 0) context.note('No backup contains it.')
    else context.say(formatTable(data, versionColumns(context), context.paint))
    return undefined
  },
})

const versionColumns = ({ now }: Context): Column<FileVersion>[] => [
  { title: 'BACKUP', cell: ({ backupId }) => backupId },
  { title: 'MADE', cell: ({ backupCreatedAt }) => formatAgo(backupCreatedAt, now()) },
  { title: 'SIZE', cell: ({ kind, sizeBytes }) => (kind === 'file' ? formatSize(sizeBytes) : kind), right: true },
  { title: 'MODIFIED', cell: ({ modifiedAt }) => formatTime(modifiedAt) },
  { title: 'VERSION', cell: ({ version }) => version, style: () => 'cyan' },
]

export const compare = command({
  summary: 'List changes from one backup to another, or to the current files',
  args: ['server', 'backup', 'other?'],
  options: { limit: { type: 'string', value: 'N', help: 'At most this many; all by default' } },
  examples: [
    'gamekeeper backup compare Castle latest',
    'gamekeeper backup compare Castle "Before the update" latest --limit 20',
  ],
  async run(context, options, { server, backup: earlier, other: later }) {
    const limit = options.limit === undefined ? Number.POSITIVE_INFINITY : readWhole(options.limit, '--limit')
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const from = await backupIdOf(context, client, serverId, earlier)
    const to = later === undefined ? {} : { to: await backupIdOf(context, client, serverId, later) }
    const query = { from, ...to, limit: Math.min(100, Math.max(1, limit)) }
    const changes = await take(client.backups.compareAll(serverId, query, { signal }), limit)
    if (context.json) context.print(changes)
    else if (changes.length === 0) context.note('Nothing has changed.')
    else context.say(formatTable(changes, CHANGE_COLUMNS, context.paint))
    return undefined
  },
})

const STYLES: Record<BackupChange['change'], Style> = { added: 'green', removed: 'red', changed: 'yellow' }

const CHANGE_COLUMNS: Column<BackupChange>[] = [
  { title: 'CHANGE', cell: ({ change }) => change, style: ({ change }) => STYLES[change] },
  { title: 'FROM', cell: ({ kind, fromBytes }) => sizeOf(kind, fromBytes), right: true },
  { title: 'TO', cell: ({ kind, toBytes }) => sizeOf(kind, toBytes), right: true },
  { title: 'PATH', cell: ({ path, kind }) => (kind === 'directory' ? `${path}/` : path) },
]

const sizeOf = (kind: BackupChange['kind'], bytes: number | null) =>
  kind === 'file' && bytes !== null ? formatSize(bytes) : '-'
