// What a script can tell from the exit code alone. docs/cli.md has the same table.
import { ApiError, TransportError } from '../sdk/index.ts'

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  notFound: 4,
  conflict: 5,
  unreachable: 6,
  rateLimited: 7,
  interrupted: 130,
} as const

/** The command line was wrong: nothing was sent. */
export class UsageError extends Error {
  readonly hint: string | undefined
  constructor(message: string, hint?: string) {
    super(message)
    this.name = 'UsageError'
    this.hint = hint
  }
}

/** No token to send, so that there is no point in asking. */
export class NoToken extends Error {}

/** A plain sentence with the exit code that goes with it. */
export class CommandError extends Error {
  readonly exitCode: number
  /** For programs that read the error as JSON. */
  readonly code: string
  constructor(message: string, exitCode: number = EXIT.failed, code = 'failed') {
    super(message)
    this.code = code
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

const BY_STATUS: Record<number, number> = {
  400: EXIT.usage,
  401: EXIT.refused,
  403: EXIT.refused,
  404: EXIT.notFound,
  409: EXIT.conflict,
  412: EXIT.conflict,
  429: EXIT.rateLimited,
  503: EXIT.unreachable,
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof NoToken) return EXIT.refused
  if (error instanceof CommandError) return error.exitCode
  if (error instanceof TransportError) return EXIT.unreachable
  if (error instanceof ApiError) return BY_STATUS[error.status] ?? EXIT.failed
  return EXIT.failed
}
