// Every error a caller can meet: its code, its status and its sentence. Programs switch on the code; the docs are
// checked against this table.

export const ERRORS = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  invalid_path: { status: 400, title: 'The path is not valid or leaves the server' },
  invalid_archive: { status: 400, title: 'The archive cannot be unpacked safely' },
  invalid_url: { status: 400, title: 'The address cannot be fetched' },
  unauthenticated: { status: 401, title: 'A valid token is required' },
  forbidden: { status: 403, title: 'The token lacks the scope' },
  not_found: { status: 404, title: 'Not found, or not visible to this token' },
  method_not_allowed: { status: 405, title: 'The path does not take this method' },
  not_acceptable: { status: 406, title: 'None of the accepted media types can be produced' },
  already_exists: { status: 409, title: 'It already exists' },
  backup_locked: { status: 409, title: 'The backup is locked' },
  backup_not_ready: { status: 409, title: 'The backup has not completed' },
  backup_damaged: { status: 409, title: 'The backup is damaged' },
  backup_limit_reached: { status: 409, title: 'The server has reached its limit of backups' },
  subdomain_limit_reached: { status: 409, title: 'The server has reached its limit of subdomains' },
  server_running: { status: 409, title: 'The server is running' },
  server_not_running: { status: 409, title: 'The server is not running' },
  server_busy: { status: 409, title: 'Other work on the server is under way' },
  restore_unfinished: { status: 409, title: 'A restore has stopped in the middle' },
  server_deleted: { status: 409, title: 'The server is deleted; it can be brought back' },
  not_startable: { status: 409, title: 'The game cannot be started' },
  install_failed: { status: 409, title: 'The game cannot be installed' },
  port_taken: { status: 409, title: 'Another program uses the port' },
  isolation_missing: { status: 409, title: 'This machine cannot keep a game away from everything else' },
  quota_exceeded: { status: 409, title: 'The disk quota of the server is exceeded' },
  template_in_use: { status: 409, title: 'A server uses the template' },
  subdomain_taken: { status: 409, title: 'The name is taken' },
  offsite_taken: { status: 409, title: 'The off-site store belongs to another service' },
  offsite_not_configured: { status: 409, title: 'No off-site store is configured' },
  idempotency_conflict: { status: 409, title: 'The idempotency key was used for another request' },
  upload_offset_conflict: { status: 409, title: 'The upload continues at another offset' },
  job_finished: { status: 409, title: 'The job has already finished' },
  precondition_failed: { status: 412, title: 'It was changed in the meantime' },
  too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  range_not_satisfiable: { status: 416, title: 'The range lies outside the file' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The request headers are too large' },
  checksum_mismatch: { status: 460, title: 'The bytes do not match their checksum and were discarded' },
  job_crashed: { status: 500, title: 'The service went down each time this was run' },
  internal: { status: 500, title: 'Something went wrong on our side' },
  agent_unreachable: { status: 503, title: 'The machine of this server cannot be reached' },
  dns_unavailable: { status: 503, title: 'The DNS provider has not confirmed the change yet' },
  offsite_unreachable: { status: 503, title: 'The off-site store cannot be reached' },
  not_ready: { status: 503, title: 'The service is not ready' },
  disk_read_only: { status: 503, title: 'The disk is read-only' },
  disk_failing: { status: 503, title: 'The disk reports errors' },
  disk_full: { status: 507, title: 'The disk is full' },
} as const satisfies Record<string, { status: number; title: string }>

export type ErrorCode = keyof typeof ERRORS

export interface FieldFault {
  path: string
  message: string
}

/** The most that one answer names: a body of a megabyte may have tens of thousands. */
export const FAULTS_MAX = 50

export interface FailureContext {
  /** A sentence for the caller. Never holds a secret or a path of the machine. */
  detail?: string
  errors?: FieldFault[]
  headers?: Record<string, string>
}

/** An error that a caller is meant to see. Everything else that is thrown becomes `internal`. */
export class Failure extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly detail: string
  readonly errors: FieldFault[] | undefined
  readonly headers: Record<string, string> | undefined

  constructor(code: ErrorCode, context: FailureContext = {}, cause?: unknown) {
    const detail = context.detail ?? `${ERRORS[code].title}.`
    super(detail, cause === undefined ? undefined : { cause })
    this.name = 'Failure'
    this.code = code
    this.status = ERRORS[code].status
    this.detail = detail
    this.errors = context.errors
    this.headers = context.headers
  }
}

/** Written at the place of the fault as `throw fail('backup_locked', { detail })`. */
export function fail(code: ErrorCode, context: FailureContext | string = {}, cause?: unknown): Failure {
  return new Failure(code, typeof context === 'string' ? { detail: context } : context, cause)
}

/** Said by control, which knows the server's state, and by the agent, which finds its folders put aside. */
export const serverDeleted = (): Failure =>
  fail('server_deleted', 'The server is deleted. Bring it back with `undelete` first.')

/** What its schema takes, or has none, and is wrong all the same. */
export function invalidField(path: string, message: string, part: 'body' | 'query' | 'form' = 'body'): Failure {
  const detail = `The ${part} is not valid: ${path} ${message}.`
  return fail('invalid_request', { detail, errors: [{ path, message }] })
}

export function isFailure(error: unknown, code?: ErrorCode): error is Failure {
  return error instanceof Failure && (code === undefined || error.code === code)
}
