// `gamekeeper backup create|ls|show|lock|unlock|restore|finish-restore|download|browse|versions|compare|verify|rehearse|rm|recover|keep`
import { type Backup, BackupError, type BackupPreview, type Client } from '../../../sdk/index.ts'
import { command, type Family } from '../../command.ts'
import type { Context } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { backupIdOf, backupIdsOf } from '../../references.ts'
import { serverIdOf, take } from '../../server-reference.ts'
import { type Column, formatFields, formatTable, type Style } from '../../text.ts'
import { formatAgo, formatSize, formatTime, readWhole } from '../../units.ts'
import { browse, download } from './backup-contents.ts'
import { compare, versions } from './backup-history.ts'
import { finishRestore, NO_WAIT, rehearse, restore, verify } from './backup-jobs.ts'
import { keep } from './backup-keep.ts'
import { recover } from './backup-recover.ts'

const create = command({
  summary: 'Back up a server',
  args: ['server'],
  options: {
    name: { type: 'string', value: 'NAME', help: 'A name; the time by default' },
    ignore: {
      type: 'string',
      multiple: true,
      value: 'PATTERN',
      help: 'What to exclude, as in a .gitignore; may be repeated',
    },
    lock: { type: 'boolean', help: 'Lock it, so that nothing deletes it' },
    'dry-run': { type: 'boolean', help: 'Make none; count what it would hold and leave out' },
    'no-wait': NO_WAIT,
  },
  examples: [
    'gamekeeper backup create Castle',
    'gamekeeper backup create Castle --name "Before the update" --lock',
    'gamekeeper backup create Castle --ignore "*.log" --dry-run',
  ],
  async run(context, options, { server }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const ignored = options.ignore?.join('\n')
    if (options['dry-run']) {
      presentPreview(context, await client.backups.preview(serverId, ignored, { signal }))
      return EXIT.ok
    }
    const made = await client.backups.create(
      serverId,
      {
        ...(options.name === undefined ? {} : { name: options.name }),
        ...(ignored === undefined ? {} : { ignored }),
        isLocked: options.lock ?? false,
      },
      { signal },
    )
    const backup = options['no-wait'] ? made : await waitFor(context, client, made)
    present(context, backup)
    return backup.status === 'failed' ? EXIT.failed : EXIT.ok
  },
})

function presentPreview(context: Context, preview: BackupPreview): void {
  if (context.json) {
    context.print(preview)
    return
  }
  const least = preview.isComplete ? '' : 'at least '
  const tally = ({ fileCount, sizeBytes }: BackupPreview['kept']) =>
    `${least}${fileCount} ${fileCount === 1 ? 'file' : 'files'}, ${formatSize(sizeBytes)}`
  const fields = { Kept: tally(preview.kept), 'Left out': tally(preview.leftOut), Ignored: patternsOf(preview) }
  context.say(formatFields(fields, context.paint))
}

const patternsOf = ({ ignored }: { ignored: string }) => ignored.split('\n').filter(Boolean).join(', ') || '-'

async function waitFor(context: Context, client: Client, made: Backup): Promise<Backup> {
  const progress = createProgress(context.io.stderr, { quiet: context.json })
  try {
    return await client.backups.wait(made.serverId, made.id, {
      signal: context.io.signal,
      onProgress: (backup) => progress.update(`Backing up (${backup.status})`, backup.progress),
    })
  } catch (error) {
    if (error instanceof BackupError) return error.backup
    throw error
  } finally {
    progress.end()
  }
}

const ls = command({
  summary: 'List the backups of a server, newest first',
  args: ['server'],
  options: { limit: { type: 'string', value: 'N', help: 'At most this many; 50 by default' } },
  examples: ['gamekeeper backup ls Castle', 'gamekeeper backup ls Castle --json'],
  async run(context, options, { server }) {
    const client = context.client()
    const limit = options.limit === undefined ? 50 : readWhole(options.limit, '--limit')
    const serverId = await serverIdOf(client, server, context.io.signal)
    const backups = await take(client.backups.all(serverId, {}, { signal: context.io.signal }), limit)
    if (context.json) context.print(backups)
    else if (backups.length === 0) context.note('There are no backups.')
    else context.say(formatTable(backups, columnsFor(context), context.paint))
    return undefined
  },
})

/** The commands that ask for one thing about one backup and show what it is then. */
const onBackup = (summary: string, verb: 'show' | 'lock' | 'unlock') =>
  command({
    summary,
    args: ['server', 'backup'],
    options: {},
    examples: [`gamekeeper backup ${verb} Castle bkp_01k9zq6m3t8v5w2x7y4c1b6d9e`],
    async run(context, _options, { server, backup: reference }) {
      const client = context.client()
      const serverId = await serverIdOf(client, server, context.io.signal)
      const backupId = await backupIdOf(context, client, serverId, reference)
      const ask = client.backups[verb === 'show' ? 'read' : verb]
      present(context, await ask(serverId, backupId, { signal: context.io.signal }))
      return undefined
    },
  })

const rm = command({
  summary: 'Delete a backup, or cancel one that is queued or running',
  args: ['server', 'backup...'],
  options: {},
  examples: ['gamekeeper backup rm Castle bkp_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, _options, { server, backup: references }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const backupIds = await backupIdsOf(context, client, serverId, references)
    for (const backupId of backupIds) {
      await client.backups.delete(serverId, backupId, { signal: context.io.signal })
      context.say(`Deleted ${backupId}.`)
    }
    if (context.json) context.print({ deleted: backupIds })
    return undefined
  },
})

const STYLES: Record<Backup['status'], Style> = { queued: 'dim', running: 'cyan', completed: 'green', failed: 'red' }

const columnsFor = ({ now }: Context): Column<Backup>[] => [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'NAME', cell: ({ name }) => name, style: () => 'cyan' },
  {
    title: 'STATUS',
    cell: ({ status, error }) => (error && status === 'completed' ? 'damaged' : status),
    style: styleOf,
  },
  { title: 'LOCKED', cell: ({ isLocked }) => (isLocked ? 'yes' : '') },
  { title: 'FILES', cell: ({ fileCount }) => String(fileCount ?? '-'), right: true },
  { title: 'SIZE', cell: ({ sizeBytes }) => sizeOr(sizeBytes), right: true },
  { title: 'STORED', cell: ({ storedBytes }) => sizeOr(storedBytes), right: true },
  { title: 'CREATED', cell: ({ createdAt }) => formatAgo(createdAt, now()) },
]

const styleOf = ({ status, error }: Backup): Style => (error ? 'red' : STYLES[status])
const sizeOr = (bytes: number | null) => (bytes === null ? '-' : formatSize(bytes))

function present(context: Context, backup: Backup): void {
  if (context.json) {
    context.print(backup)
    return
  }
  const time = (iso: string | null) => (iso === null ? '-' : formatTime(iso))
  const fields: Record<string, string> = {
    Name: backup.name,
    Id: backup.id,
    Status: backup.status,
    Locked: backup.isLocked ? 'yes' : 'no',
    Consistency: consistencyOf(backup),
    Files: String(backup.fileCount ?? '-'),
    Size: `${sizeOr(backup.sizeBytes)}, ${sizeOr(backup.storedBytes)} added to the store`,
    Ignored: patternsOf(backup),
    Checksum: backup.checksum ?? '-',
    Created: time(backup.createdAt),
    Completed: time(backup.completedAt),
    Verified: time(backup.verifiedAt),
    Rehearsed: time(backup.rehearsedAt),
  }
  if (backup.rehearsal?.outcome === 'failed')
    fields['Last rehearsal'] = `failed ${time(backup.rehearsal.at)}: ${backup.rehearsal.reason}`
  if (backup.error) fields.Error = `${backup.error.code}: ${backup.error.detail}`
  for (const [index, warning] of backup.warnings.entries()) fields[`Warning ${index + 1}`] = warning
  context.say(formatFields(fields, context.paint))
}

const consistencyOf = ({ consistency, heldMs }: Backup) =>
  consistency === 'quiesced' && heldMs !== null ? `quiesced, held still for ${heldMs} ms` : (consistency ?? '-')

export const backup: Family = {
  subcommands: {
    create,
    ls,
    show: onBackup('Show a backup', 'show'),
    lock: onBackup('Lock a backup, so that nothing deletes it', 'lock'),
    unlock: onBackup('Unlock a backup', 'unlock'),
    restore,
    'finish-restore': finishRestore,
    download,
    browse,
    versions,
    compare,
    verify,
    rehearse,
    rm,
    keep,
    recover,
  },
}
