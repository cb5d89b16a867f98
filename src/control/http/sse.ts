// Server-sent events with back-pressure: a client that reads slowly makes us wait, not grow.
import { once } from 'node:events'
import type { FastifyReply } from 'fastify'

/** Sends each chunk as it comes, an empty one as a sign of life. Ends when the source ends or the client goes away. */
export async function sendEvents(
  reply: FastifyReply,
  source: (signal: AbortSignal) => AsyncIterable<string>,
  signal: AbortSignal,
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
      if (!raw.write(step.value || ': alive\n\n')) await once(raw, 'drain', { signal: end })
    }
  } catch (error) {
    if (!end.aborted) reply.log.error({ err: error, requestId: reply.request.id }, 'event stream broke')
  } finally {
    await chunks.return?.()
    raw.end()
  }
}
