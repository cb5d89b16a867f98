// What can go wrong, as classes that a program can tell apart: the service said no, nobody answered, a job failed.
import type { Backup } from '../contract/backups/backups.ts'
import { ERRORS, type ErrorCode, type FieldFault } from '../contract/errors.ts'
import type { Job } from '../contract/jobs.ts'
import type { Problem } from '../contract/schema.ts'

interface MoreOfError {
  attempts?: number
  retryAfterMs?: number | null
  cause?: unknown
}

/** The service has refused. `code` is the stable thing to switch on. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly detail: string
  /** Every field at fault, where the request was not valid. */
  readonly errors: readonly FieldFault[]
  /** Names the request in the log of the service. */
  readonly requestId: string | null
  /** From 2 on, an earlier attempt had no answer and may have done what was asked. */
  readonly attempts: number
  /** How long the service asks callers to wait, if it does. */
  readonly retryAfterMs: number | null

  constructor(problem: Problem, more: MoreOfError = {}) {
    super(problem.detail, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'ApiError'
    this.code = problem.code as ErrorCode
    this.status = problem.status
    this.detail = problem.detail
    this.errors = problem.errors ?? []
    this.requestId = problem.requestId || null
    this.attempts = more.attempts ?? 1
    this.retryAfterMs = more.retryAfterMs ?? null
  }
}

export function isApiError(error: unknown, ...codes: ErrorCode[]): error is ApiError {
  return error instanceof ApiError && (codes.length === 0 || codes.includes(error.code))
}

/** As the service would refuse it, found out here: before anything was sent, unless another code says otherwise. */
export function refusedHere(detail: string, code: ErrorCode = 'invalid_request', more: MoreOfError = {}): ApiError {
  const { status, title } = ERRORS[code]
  return new ApiError({ type: 'about:blank', title, status, detail, code, requestId: '' }, more)
}

export const changedWhileSent = (more: MoreOfError = {}) =>
  refusedHere('A file was changed or removed while it was being sent.', 'precondition_failed', more)

export type TransportFault =
  /** No connection, or it broke before the answer was whole. */
  | 'network'
  /** No answer in time. */
  | 'timeout'
  /** Something answered that is not the service, such as a proxy in front of it. */
  | 'foreign_answer'

/** Nobody answered, or somebody else did. Whether the request was carried out is not known. */
export class TransportError extends Error {
  readonly fault: TransportFault
  readonly status: number | null
  readonly attempts: number

  constructor(
    fault: TransportFault,
    message: string,
    more: { status?: number; attempts?: number; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'TransportError'
    this.fault = fault
    this.status = more.status ?? null
    this.attempts = more.attempts ?? 1
  }
}

/** The work was accepted and has not come to a good end. */
export class JobError extends Error {
  readonly job: Job

  constructor(job: Job) {
    super(job.status === 'cancelled' ? 'The job was cancelled.' : (job.error?.detail ?? 'The job failed.'))
    this.name = 'JobError'
    this.job = job
  }
}

/** The backup was accepted and has failed. */
export class BackupError extends Error {
  readonly backup: Backup

  constructor(backup: Backup) {
    super(backup.error?.detail ?? 'The backup failed.')
    this.name = 'BackupError'
    this.backup = backup
  }
}
