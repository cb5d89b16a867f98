// `gamekeeper backup restore|finish-restore|verify|rehearse`: work on a backup that goes on in the service.
import type { Client } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { EXIT, UsageError } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { backupIdOf } from '../../references.ts'
import { serverIdOf } from '../../server-reference.ts'
import { formatSize, readWhole } from '../../units.ts'

export const NO_WAIT = { type: 'boolean', help: 'Return once the work has started' } as const

export const restore = command({
  summary: 'Restore a backup',
  description:
    'Everything is checked before anything is touched, and the current files are backed up first. Files created since go to the trash, unless you pass --merge.',
  args: ['server', 'backup'],
  options: {
    path: { type: 'string', multiple: true, value: 'PATH', help: 'Only this file or folder; may be repeated' },
    merge: { type: 'boolean', help: 'Keep files that are not in the backup' },
    'no-safety': { type: 'boolean', help: 'Skip the safety backup' },
    into: { type: 'string', value: 'SERVER', help: 'Restore into another server' },
    stop: { type: 'boolean', help: 'Stop the game first if it runs, and start it again afterwards' },
    'no-wait': NO_WAIT,
  },
  examples: [
    'gamekeeper backup restore Castle "Before the update"',
    'gamekeeper backup restore Castle latest --path /world/level.dat',
    'gamekeeper backup restore Castle latest --stop',
  ],
  async run(context, options, { server, backup: reference }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const backupId = await backupIdOf(context, client, serverId, reference)
    const targetServerId = options.into === undefined ? serverId : await serverIdOf(client, options.into, signal)
    const request = {
      mode: options.merge ? ('merge' as const) : ('replace' as const),
      safetyBackup: !options['no-safety'],
      targetServerId,
      ...(options.path ? { paths: options.path } : {}),
      ...(options.stop ? { stop: true } : {}),
    }
    const job = await client.backups.restore(serverId, backupId, request, { signal })
    if (options['no-wait']) return sayJob(context, job)
    const done = await followJob(context, client, targetServerId, job.id, 'Restoring')
    if (context.json) context.print(done)
    else context.say(`Restored: ${summaryOf(done.result)}.`)
    return undefined
  },
})

export const finishRestore = command({
  summary: 'Finish a restore that has stopped in the middle',
  description:
    '--forward completes the restore, --back returns to the files before it. Nothing newer is lost: it stays, or goes to the trash.',
  args: ['server'],
  options: {
    forward: { type: 'boolean', help: 'Complete the restore' },
    back: { type: 'boolean', help: 'Go back to the files before the restore' },
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
    else if (options.back) context.say('The files are back as they were before the restore.')
    else context.say(`Restored: ${summaryOf(done.result)}.`)
    return undefined
  },
})

export const verify = command({
  summary: 'Read every block of a backup and check it',
  description:
    'What the disk has lost is put in place again from the off-site store, if there is one. Exits with 1 when something is\n' +
    'damaged. With --offsite all that the off-site store has of the backup is read too, which providers may charge for.',
  args: ['server', 'backup'],
  options: { offsite: { type: 'boolean', help: 'Check the copy in the off-site store as well' }, 'no-wait': NO_WAIT },
  examples: ['gamekeeper backup verify Castle latest', 'gamekeeper backup verify Castle latest --offsite'],
  async run(context, options, { server, backup: reference }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const backupId = await backupIdOf(context, client, serverId, reference)
    const job = await client.backups.verify(serverId, backupId, {
      signal,
      ...(options.offsite ? { offsite: true } : {}),
    })
    if (options['no-wait']) return sayJob(context, job)
    const done = await followJob(context, client, serverId, job.id, 'Verifying')
    const result = done.result as unknown as VerifyResult
    if (context.json) context.print(done)
    else for (const line of verdictOf(result)) context.say(line)
    return result.damage.length === 0 ? EXIT.ok : EXIT.failed
  },
})

interface VerifyResult {
  damage: { blob: string; what: string; touches: { path: string }[]; isOffsite?: boolean }[]
  healed?: string[]
}

function verdictOf({ damage, healed = [] }: VerifyResult): string[] {
  const healing = healed.map((blob) => `${blob} was damaged, and is sound again: the off-site store had it.`)
  if (damage.length === 0) return [...healing, 'Every block is intact.']
  const lines = damage.map(({ blob, what, touches, isOffsite }) => {
    const where = isOffsite ? `In the off-site store, ${blob}: ${what}` : what
    return touches.length === 0 ? where : `${where}: ${touches.map(({ path }) => path).join(', ')}`
  })
  return [...healing, ...lines]
}

export const rehearse = command({
  summary: 'Start the game from a backup, beside its server',
  description:
    'The backup is restored into a scratch place and the game started there, without a network, until it is up.\n' +
    'The server itself is not touched. Shows the log and exits with 1 when the game did not come up.',
  args: ['server', 'backup'],
  options: {
    timeout: { type: 'string', value: 'SECONDS', help: 'Within which the game has to be up; 300 by default' },
    log: { type: 'boolean', help: 'Show the log also when it came up' },
    'no-wait': NO_WAIT,
  },
  examples: ['gamekeeper backup rehearse Castle latest', 'gamekeeper backup rehearse Castle latest --timeout 60 --log'],
  async run(context, options, { server, backup: reference }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const backupId = await backupIdOf(context, client, serverId, reference)
    const body = options.timeout === undefined ? {} : { timeoutSeconds: readWhole(options.timeout, '--timeout') }
    const job = await client.backups.rehearse(serverId, backupId, body, { signal })
    if (options['no-wait']) return sayJob(context, job)
    await followJob(context, client, serverId, job.id, 'Rehearsing')
    const rehearsal = await client.backups.rehearsal(serverId, backupId, { signal })
    const isPassed = rehearsal.outcome === 'passed'
    if (context.json) context.print(rehearsal)
    else {
      if (!isPassed || options.log) for (const line of rehearsal.log) context.say(line)
      context.say(
        [isPassed ? 'The game came up.' : 'Failed.', ...(rehearsal.reason ? [rehearsal.reason] : [])].join(' '),
      )
    }
    return isPassed ? EXIT.ok : EXIT.failed
  },
})

function sayJob(context: Context, job: { id: string }): undefined {
  if (context.json) context.print(job)
  else context.say(`Started as ${job.id}.`)
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
  const written = `${filesRestored} files written (${formatSize(bytesRestored)}), ${filesKept} already matched`
  return safetyBackupId === null ? written : `${written}; the previous files are in ${safetyBackupId}`
}
