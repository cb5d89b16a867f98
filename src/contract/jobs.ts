import { ERRORS, type ErrorCode } from './errors.ts'
import { operation } from './operation.ts'
import { BOUNDS } from './operation-bounds.ts'
import { Closed, Id, Nullable, OneOf, Page, PageQuery, ServerParams, type Static, Timestamp, Type } from './schema.ts'
import { eventStreamOf } from './stream-examples.ts'

export const JOB_STATUSES = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

export const Progress = Type.Object({
  filesDone: Type.Integer(),
  filesTotal: Nullable(Type.Integer()),
  bytesDone: Type.Integer(),
  bytesTotal: Nullable(Type.Integer()),
})
export type Progress = Static<typeof Progress>

export const WorkError = Type.Object({
  code: OneOf(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
  detail: Type.String(),
})
export type WorkError = Static<typeof WorkError>

export const Job = Type.Object({
  id: Id,
  kind: Type.String({ description: 'What is being done, such as `server.delete` or `restore`' }),
  status: OneOf(JOB_STATUSES),
  progress: Progress,
  error: Type.Union([WorkError, Type.Null()]),
  result: Type.Unsafe<unknown>({ description: 'What came of it; null until it has completed' }),
  createdAt: Timestamp,
  startedAt: Nullable(Timestamp),
  finishedAt: Nullable(Timestamp),
})
export type Job = Static<typeof Job>

export const jobExample = {
  id: 'job_01k9zq6m3t8v5w2x7y4c1b6d9e',
  kind: 'server.delete',
  status: 'running',
  progress: { filesDone: 12, filesTotal: 40, bytesDone: 1_048_576, bytesTotal: 4_194_304 },
  error: null,
  result: null,
  createdAt: '2026-11-15T00:00:00.000Z',
  startedAt: '2026-11-15T00:00:00.250Z',
  finishedAt: null,
}

const JobParams = Closed({ ...ServerParams.properties, jobId: Id })

export const listJobs = operation({
  id: 'listJobs',
  method: 'GET',
  path: '/servers/{serverId}/jobs',
  tag: 'Jobs',
  summary: 'List the jobs of a server',
  description: 'Newest first. A finished job is kept for seven days.',
  scope: 'servers:read',
  bound: BOUNDS.page,
  params: ServerParams,
  query: Closed({ ...PageQuery, status: Type.Optional(OneOf(JOB_STATUSES)) }),
  answers: {
    200: { description: 'A page of jobs', schema: Page(Job), example: { data: [jobExample], nextCursor: null } },
  },
  errors: [],
})

export const readJob = operation({
  id: 'readJob',
  method: 'GET',
  path: '/servers/{serverId}/jobs/{jobId}',
  tag: 'Jobs',
  summary: 'Read one job',
  description:
    'With `Accept: text/event-stream` the job is sent each time something about it changes, until it has ended.',
  scope: 'servers:read',
  bound: BOUNDS.rows,
  params: JobParams,
  answers: {
    200: { description: 'The job', schema: Job, alternatives: eventStreamOf('job', jobExample), example: jobExample },
  },
  errors: ['not_acceptable'],
})

export const cancelJob = operation({
  id: 'cancelJob',
  method: 'DELETE',
  path: '/servers/{serverId}/jobs/{jobId}',
  tag: 'Jobs',
  summary: 'Cancel a job',
  description:
    'A queued job is cancelled at once. A running one is asked to stop, and what it has staged is taken away.',
  scope: 'servers:write',
  bound: BOUNDS.rows,
  params: JobParams,
  answers: { 202: { description: 'It has been asked to stop', schema: Job, example: jobExample } },
  errors: ['job_finished', 'server_busy', 'backup_locked'],
})
