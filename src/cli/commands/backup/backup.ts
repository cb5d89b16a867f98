// `gamekeeper backup create|ls|show|lock|unlock|restore|finish-restore|download|browse|verify|rm|recover|keep`
import { type Backup, BackupError, type Client } from '../../../sdk/index.ts'
import { command, type Family } from '../../command.ts'
import type { Context } from '../../context.ts'
import { EXIT, UsageError } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { serverIdOf, take } from '../../server-reference.ts'
import { type Column, formatFields, formatTable, type Style } from '../../text.ts'
import { formatAgo, formatSize, formatTime, readWhole } from '../../units.ts'
import { browse, download } from './backup-contents.ts'
import { keep } from './backup-keep.ts'
import { recover } from './backup-recover.ts'

const NO_WAIT = { type: 'boolean', help: 'Return once the work has begun' } as const

const create = command({
  summary: 'Back up a server',
  args: ['server'],
  options: {
    name: { type: 'string', value: 'NAME', help: 'A name; the time by default' },
    ignore: {
      type: 'string',
      multiple: true,
      value: 'PATTERN',
      help: 'What to leave out, as in a .gitignore; may be repeated',
    },
    lock: { type: 'boolean', help: 'Lock it, so that nothing deletes it' },
    'no-wait': NO_WAIT,
  },
  examples: ['gamekeeper backup create Castle', 'gamekeeper backup create Castle --name "Before the update" --lock'],
  async run(context, options, { server }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const made = await client.backups.create(
      serverId,
      {
        ...(options.name === undefined ? {} : { name: options.name }),
        ...(options.ignore ? { ignored: options.ignore.join('\n') } : {}),
        isLocked: options.lock ?? false,
      },
      { signal: context.io.signal },
    )
    const backup = options['no-wait'] ? made : await waitFor(context, client, made)
    present(context, backup)
    return backup.status === 'failed' ? EXIT.failed : EXIT.ok
  },
})

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
    async run(context, _options, { server, backup: backupId }) {
      const client = context.client()
      const serverId = await serverIdOf(client, server, context.io.signal)
      const ask = client.backups[verb === 'show' ? 'read' : verb]
      present(context, await ask(serverId, backupId, { signal: context.io.signal }))
      return undefined
    },
  })

const restore = command({
  summary: 'Restore a backup',
  description:
    'Everything is checked before anything is touched, and what is there now is backed up first. What was made since goes to the trash, unless --merge leaves it.',
  args: ['server', 'backup'],
  options: {
    path: { type: 'string', multiple: true, value: 'PATH', help: 'Only this file or folder; may be repeated' },
    merge: { type: 'boolean', help: 'Leave what the backup does not have' },
    'no-safety': { type: 'boolean', help: 'Take no backup of what is there now' },
    into: { type: 'string', value: 'SERVER', help: 'Restore into another server' },
    'no-wait': NO_WAIT,
  },
  examples: [
    'gamekeeper backup restore Castle bkp_01k9zq6m3t8v5w2x7y4c1b6d9e',
    'gamekeeper backup restore Castle bkp_01k9zq6m3t8v5w2x7y4c1b6d9e --path /world/level.dat',
  ],
  async run(context, options, { server, backup: backupId }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const targetServerId = options.into === undefined ? serverId : await serverIdOf(client, options.into, signal)
    const request = {
      mode: options.merge ? ('merge' as const) : ('replace' as const),
      safetyBackup: !options['no-safety'],
      targetServerId,
      ...(options.path ? { paths: options.path } : {}),
    }
    const job = await client.backups.restore(serverId, backupId, request, { signal })
    if (options['no-wait']) return sayJob(context, job)
    const done = await followJob(context, client, targetServerId, job.id, 'Restoring')
    if (context.json) context.print(done)
    else context.say(`Restored: ${summaryOf(done.result)}.`)
    return undefined
  },
})

const finishRestore = command({
  summary: 'Finish a restore that has stopped in the middle',
  description:
    'With --forward the files become what the backup has, with --back what they were before the restore. Nothing newer is lost: it stays, or goes to the trash.',
  args: ['server'],
  options: {
    forward: { type: 'boolean', help: 'Go on to what the backup has' },
    back: { type: 'boolean', help: 'Go back to what was there before' },
    'no-wait': NO_WAIT,
  },
  examples: ['gamekeeper backup finish-restore Castle --forward', 'gamekeeper backup finish-restore Castle --back'],
  async run(context, options, { server }) {
    if (options.forward === options.back) throw new UsageError('Choose one of --forward and --back.')
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const job = await client.backups.finishRestore(serverId, options.forward ? 'forward' : 'back', { signal })
    if (options['no-wait']) return sayJob(context, job)
    const done = await followJob(context, client, serverId, job.id, 'Finishing')
    if (context.json) context.print(done)
    else if (options.back) context.say('The files are what they were before the restore.')
    else context.say(`Restored: ${summaryOf(done.result)}.`)
    return undefined
  },
})

const verify = command({
  summary: 'Read every block of a backup and check it',
  description: 'Exits with 1 when something is damaged.',
  args: ['server', 'backup'],
  options: { 'no-wait': NO_WAIT },
  examples: ['gamekeeper backup verify Castle bkp_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, options, { server, backup: backupId }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const job = await client.backups.verify(serverId, backupId, { signal: context.io.signal })
    if (options['no-wait']) return sayJob(context, job)
    const done = await followJob(context, client, serverId, job.id, 'Verifying')
    const { damage } = done.result as { damage: { what: string; touches: { path: string }[] }[] }
    if (context.json) context.print(done)
    else if (damage.length === 0) context.say('Every block is what was written.')
    else for (const { what, touches } of damage) context.say(`${what}: ${touches.map(({ path }) => path).join(', ')}`)
    return damage.length === 0 ? EXIT.ok : EXIT.failed
  },
})

const rm = command({
  summary: 'Delete a backup, or cancel one that is queued or running',
  args: ['server', 'backup...'],
  options: {},
  examples: ['gamekeeper backup rm Castle bkp_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, _options, { server, backup: backupIds }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    for (const backupId of backupIds) {
      await client.backups.delete(serverId, backupId, { signal: context.io.signal })
      context.say(`Deleted ${backupId}.`)
    }
    if (context.json) context.print({ deleted: backupIds })
    return undefined
  },
})

function sayJob(context: Context, job: { id: string }): undefined {
  if (context.json) context.print(job)
  else context.say(`Begun as ${job.id}.`)
}

async function followJob(context: Context, client: Client, serverId: string, jobId: string, label: string) {
  const progress = createProgress(context.io.stderr, { quiet: context.json })
  try {
    return await client.jobs.wait(serverId, jobId, {
      signal: context.io.signal,
      onProgress: (job) => progress.update(label, job.progress),
    })
  } finally {
    progress.end()
  }
}

function summaryOf(result: unknown): string {
  const { filesRestored, filesKept, bytesRestored, safetyBackupId } = result as {
    filesRestored: number
    filesKept: number
    bytesRestored: number
    safetyBackupId: string | null
  }
  const written = `${filesRestored} files written (${formatSize(bytesRestored)}), ${filesKept} were right already`
  return safetyBackupId === null ? written : `${written}; what was there is in ${safetyBackupId}`
}

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
    Consistency: backup.consistency ?? '-',
    Files: String(backup.fileCount ?? '-'),
    Size: `${sizeOr(backup.sizeBytes)}, ${sizeOr(backup.storedBytes)} added to the store`,
    Ignored: backup.ignored.split('\n').filter(Boolean).join(', ') || '-',
    Checksum: backup.checksum ?? '-',
    Created: time(backup.createdAt),
    Completed: time(backup.completedAt),
    Verified: time(backup.verifiedAt),
  }
  if (backup.error) fields.Error = `${backup.error.code}: ${backup.error.detail}`
  for (const [index, warning] of backup.warnings.entries()) fields[`Warning ${index + 1}`] = warning
  context.say(formatFields(fields, context.paint))
}

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
    verify,
    rm,
    keep,
    recover,
  },
}
