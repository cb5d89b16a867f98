// The only place where an error becomes a response.
import type { FastifyError } from 'fastify'
import { ERRORS, type ErrorCode, type Failure, fail, isFailure } from '../contract/errors.ts'
import type { Problem } from '../contract/schema.ts'
import { diskFaultOf } from '../kit/files/disk-faults.ts'

export const PROBLEM_TYPE = 'application/problem+json'

/** What Fastify refuses on its own, in our codes. */
const FASTIFY_CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  FST_ERR_NOT_FOUND: 'not_found',
}

/** Anything that is thrown, as a failure that may be shown. What we did not foresee says nothing of itself. */
export function toFailure(error: unknown): Failure {
  if (isFailure(error)) return error
  const diskFault = diskFaultOf(error)
  if (diskFault) return fail(diskFault, {}, error)
  const { code: ownCode, statusCode = 500 } = (error ?? {}) as { code?: unknown; statusCode?: number }
  // That of an aborted signal is a number.
  const fastifyCode = typeof ownCode === 'string' ? ownCode : ''
  const refused = fastifyCode.startsWith('FST_ERR_') && statusCode >= 400 && statusCode < 500
  const code = FASTIFY_CODES[fastifyCode] ?? (refused ? 'invalid_request' : undefined)
  if (code === 'invalid_request') return fail(code, (error as FastifyError).message, error)
  return fail(code ?? 'internal', {}, error)
}

export function problemOf(failure: Failure, requestId: string): Problem {
  return {
    type: `urn:gamekeeper:error:${failure.code}`,
    title: ERRORS[failure.code].title,
    status: failure.status,
    detail: failure.detail,
    code: failure.code,
    requestId,
    ...(failure.errors ? { errors: failure.errors } : {}),
  }
}
