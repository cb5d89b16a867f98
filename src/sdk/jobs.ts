import { cancelJob, type Job, listJobs, readJob } from '../contract/jobs.ts'
import type { QueryOf } from '../contract/operation.ts'
import { sleep } from './backoff.ts'
import { JobError } from './errors.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export type JobQuery = QueryOf<typeof listJobs>

export interface WaitOptions {
  onProgress?: (job: Job) => void
  signal?: AbortSignal
}

const FIRST_POLL_MS = 25
const LONGEST_POLL_MS = 2000

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
  { onProgress, signal }: WaitOptions,
): Promise<Job> {
  for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(LONGEST_POLL_MS, waitMs * 1.5)) {
    const job = await transport.call(readJob, { params: { serverId, jobId }, ...(signal ? { signal } : {}) })
    onProgress?.(job)
    if (job.status === 'completed') return job
    if (job.status === 'failed' || job.status === 'cancelled') throw new JobError(job)
    await sleep(waitMs, signal)
  }
}
