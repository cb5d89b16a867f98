// What goes on after a failure for longer than a single request does: a transfer, or waiting for something.
import { sleep } from './backoff.ts'
import { ApiError, isApiError, TransportError } from './errors.ts'
import { waitBefore } from './transport.ts'

const FAILURES_AT_MOST = 12

/** A token that was revoked or a server that is gone stays so. */
export const isPassingRefusal = ({ status }: ApiError) => status === 429 || status >= 500

/** Returns when it is time for another attempt; throws the error when another would not help. */
export async function pauseAfter(
  error: unknown,
  failures: number,
  { signal, retries = FAILURES_AT_MOST }: { signal?: AbortSignal; retries?: number },
): Promise<void> {
  signal?.throwIfAborted()
  const waitMs = failures > retries ? null : waitBefore(asPassing(error), failures)
  if (waitMs === null) throw error
  await sleep(waitMs, signal)
}

/** Where something can be taken up again, these too are worth another attempt. */
function asPassing(error: unknown): unknown {
  const passes = isApiError(error, 'upload_offset_conflict', 'checksum_mismatch', 'server_busy', 'internal')
  return passes && error instanceof ApiError ? new TransportError('network', error.detail, { cause: error }) : error
}
