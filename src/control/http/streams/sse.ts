// Server-sent events with back-pressure: a client that reads slowly makes us wait, not grow. One that reads too slowly is
// dropped, and resumes from the last event that it has seen.
import { once } from 'node:events'
import type { FastifyReply } from 'fastify'
import { SLOW_READER_MS } from '../../../contract/fixed-limits.ts'

/** Sends each chunk as it comes, an empty one as a sign of life. Ends when the source ends or the client goes away. */
export async function sendEvents(
  reply: FastifyReply,
  source: (signal: AbortSignal) => AsyncIterable<string>,
  signal: AbortSignal,
  slowReaderMs = SLOW_READER_MS,
): Promise<void> {
  const { raw } = reply
  const gone = new AbortController()
  raw.once('close', () => gone.abort())
  // Gone before we came to listen: nothing would ever say so again, and the stream would be held for ever.
  if (raw.destroyed) gone.abort()
  const end = AbortSignal.any([signal, gone.signal])
  const chunks = source(end)[Symbol.asyncIterator]()
  // The first step may still refuse; nothing has been sent before it.
  const first = await chunks.next()
  reply.hijack()
  raw.writeHead(200, {
    ...reply.getHeaders(),
    'content-type': 'text/event-stream',
    connection: 'close',
    'x-accel-buffering': 'no',
  } as Record<string, string>)
  raw.write(`retry: 1000\n\n${first.value ?? ''}`)
  try {
    for (let step = await chunks.next(); !step.done && !end.aborted; step = await chunks.next()) {
      if (raw.write(step.value || ': alive\n\n')) continue
      const tooLong = setTimeout(() => raw.destroy(), slowReaderMs)
      await once(raw, 'drain', { signal: end }).finally(() => clearTimeout(tooLong))
    }
  } catch (error) {
    if (!end.aborted) reply.log.error({ err: error, requestId: reply.request.id }, 'event stream broke')
  } finally {
    await chunks.return?.()
    raw.end()
  }
}

/** The same for an answer that flows by itself: whoever does not take a piece of it in time is dropped. */
export async function* orDropped<T>(
  { raw }: FastifyReply,
  pieces: AsyncIterable<T>,
  slowReaderMs = SLOW_READER_MS,
): AsyncGenerator<T> {
  for await (const piece of pieces) {
    const tooLong = setTimeout(() => raw.destroy(), slowReaderMs)
    try {
      yield piece
    } finally {
      clearTimeout(tooLong)
    }
  }
}
