import { cancelJob, type Job, listJobs, readJob } from '../contract/jobs.ts'
import type { QueryOf } from '../contract/operation.ts'
import { JobError } from './errors.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import { STREAM, untilEnded } from './streams/wait-for-end.ts'
import type { Transport } from './transport.ts'

export type JobQuery = QueryOf<typeof listJobs>

export interface WaitOptions {
  onProgress?: (job: Job) => void
  signal?: AbortSignal
}

export function createJobsApi(transport: Transport) {
  const list = transport.method(listJobs, (serverId: string, query: JobQuery = {}, options: CallOptions = {}) => ({
    params: { serverId },
    query,
    ...options,
  }))
  return {
    /** One page, newest first. */
    list,
    all: (serverId: string, query: JobQuery = {}, options: CallOptions = {}): AsyncGenerator<Job, void, undefined> =>
      itemsOf((pageQuery: JobQuery) => list(serverId, pageQuery, options), query),
    read: transport.method(readJob, (serverId: string, jobId: string, options: CallOptions = {}) => ({
      params: { serverId, jobId },
      ...options,
    })),
    cancel: transport.method(cancelJob, (serverId: string, jobId: string, options: CallOptions = {}) => ({
      params: { serverId, jobId },
      ...options,
    })),
    /** Resolves with the job once it has completed; rejects with `JobError` when it failed or was cancelled. */
    wait: (serverId: string, jobId: string, options: WaitOptions = {}): Promise<Job> =>
      waitForJob(transport, serverId, jobId, options),
  }
}

export async function waitForJob(
  transport: Transport,
  serverId: string,
  jobId: string,
  options: WaitOptions,
): Promise<Job> {
  const params = { serverId, jobId }
  const job = await untilEnded<Job>(
    {
      read: () => transport.call(readJob, { params, ...(options.signal ? { signal: options.signal } : {}) }),
      open: (signal) => transport.open(readJob, { params, signal }, STREAM),
    },
    options,
  )
  if (job.status !== 'completed') throw new JobError(job)
  return job
}
