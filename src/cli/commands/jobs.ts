// `gamekeeper jobs ls|show|wait|cancel`
import { JOB_STATUSES, type JobStatus } from '../../contract/jobs.ts'
import { type Job, JobError } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { EXIT, UsageError } from '../exit-codes.ts'
import { createProgress, formatProgress } from '../progress.ts'
import { serverIdOf, take } from '../server-reference.ts'
import { type Column, formatFields, formatTable, type Style } from '../text.ts'
import { formatAgo, formatTime, readWhole } from '../units.ts'

const ls = command({
  summary: 'List the jobs of a server, newest first',
  args: ['server'],
  options: {
    status: { type: 'string', value: 'STATUS', help: `Only those that are ${JOB_STATUSES.join(', ')}` },
    limit: { type: 'string', value: 'N', help: 'At most this many; 50 by default' },
  },
  examples: ['gamekeeper jobs ls Castle', 'gamekeeper jobs ls Castle --status running --json'],
  async run(context, options, { server }) {
    const client = context.client()
    const limit = options.limit === undefined ? 50 : readWhole(options.limit, '--limit')
    const status = options.status === undefined ? {} : { status: readStatus(options.status) }
    const serverId = await serverIdOf(client, server, context.io.signal)
    const jobs = await take(client.jobs.all(serverId, status, { signal: context.io.signal }), limit)
    if (context.json) context.print(jobs)
    else if (jobs.length === 0) context.note('There are no jobs.')
    else context.say(formatTable(jobs, columnsFor(context), context.paint))
    return undefined
  },
})

const show = command({
  summary: 'Show a job',
  args: ['server', 'job'],
  options: {},
  examples: ['gamekeeper jobs show Castle job_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, _options, { server, job: jobId }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    present(context, await client.jobs.read(serverId, jobId, { signal: context.io.signal }))
    return undefined
  },
})

const wait = command({
  summary: 'Wait for a job to end',
  description: 'Exits with 0 when it has completed and with 1 when it failed or was cancelled.',
  args: ['server', 'job'],
  options: {},
  examples: ['gamekeeper jobs wait Castle job_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, _options, { server, job: jobId }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const progress = createProgress(context.io.stderr, { quiet: context.json })
    const job = await client.jobs
      .wait(serverId, jobId, {
        signal: context.io.signal,
        onProgress: (now) => progress.update(now.kind, now.progress),
      })
      .catch((error) => {
        if (error instanceof JobError) return error.job
        throw error
      })
      .finally(() => progress.end())
    present(context, job)
    return job.status === 'completed' ? EXIT.ok : EXIT.failed
  },
})

const cancel = command({
  summary: 'Cancel a job',
  args: ['server', 'job'],
  options: {},
  examples: ['gamekeeper jobs cancel Castle job_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, _options, { server, job: jobId }) {
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    present(context, await client.jobs.cancel(serverId, jobId, { signal: context.io.signal }))
    return undefined
  },
})

function readStatus(text: string): JobStatus {
  const status = JOB_STATUSES.find((known) => known === text)
  if (!status) throw new UsageError(`--status must be one of ${JOB_STATUSES.join(', ')}.`)
  return status
}

const STYLES: Record<JobStatus, Style> = {
  queued: 'dim',
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  cancelled: 'yellow',
}

const columnsFor = ({ now }: Context): Column<Job>[] => [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'KIND', cell: ({ kind }) => kind },
  { title: 'STATUS', cell: ({ status }) => status, style: ({ status }) => STYLES[status] },
  { title: 'CREATED', cell: ({ createdAt }) => formatAgo(createdAt, now()) },
  { title: 'ERROR', cell: ({ error }) => error?.detail ?? '' },
]

function present(context: Context, job: Job): void {
  if (context.json) {
    context.print(job)
    return
  }
  const time = (iso: string | null) => (iso === null ? '-' : formatTime(iso))
  const fields: Record<string, string> = {
    Id: job.id,
    Kind: job.kind,
    Status: job.status,
    Progress: formatProgress('', job.progress, 0).trim() || '-',
    Created: time(job.createdAt),
    Started: time(job.startedAt),
    Finished: time(job.finishedAt),
  }
  if (job.error) fields.Error = `${job.error.code}: ${job.error.detail}`
  if (job.result !== null && job.result !== undefined) fields.Result = JSON.stringify(job.result)
  context.say(formatFields(fields, context.paint))
}

export const jobs: Family = { subcommands: { ls, show, wait, cancel } }
