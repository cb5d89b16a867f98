// When a client disconnects, work done only for its response stops.
import type { FastifyReply } from 'fastify'
import { fail } from '../contract/errors.ts'

/** Runs `work` with a signal that fires with the given one, and when the client leaves before its answer is complete. */
export async function whileClientStays<T>(
  { raw }: FastifyReply,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const left = new AbortController()
  const onClose = () => {
    if (!raw.writableFinished) left.abort(fail('invalid_request', 'The client disconnected.'))
  }
  raw.once('close', onClose)
  // Gone before we came to listen: nothing would ever say so again.
  if (raw.destroyed) onClose()
  try {
    return await work(AbortSignal.any([signal, left.signal]))
  } finally {
    raw.off('close', onClose)
  }
}
