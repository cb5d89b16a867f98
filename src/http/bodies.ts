// The body of a request as it arrives, and how a request is answered that is refused before its body has ended.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fail } from '../contract/errors.ts'
import { BODY_LINGER_MS, THROWN_AWAY_BYTES_PER_SECOND } from '../contract/limits.ts'
import { createPace } from '../kit/pace.ts'

const QUEUED_BYTES = 64 * 1024
const SMALL_BYTES = 1024

export interface BodyOptions {
  signal: AbortSignal
  /** Called for every chunk that arrives. */
  onBytes?: () => void
}

/**
 * Fails when the connection is cut before the body has ended, and at once when the signal fires, also while nothing
 * arrives. The connection is never destroyed from here: whoever is refused must be able to read the answer.
 */
export async function* bodyOf(request: IncomingMessage, { signal, onBytes }: BodyOptions): AsyncGenerator<Buffer> {
  const queue: Buffer[] = []
  let queuedBytes = 0
  let ended = request.readableEnded
  let wake = () => {}
  const onData = (chunk: Buffer) => {
    queue.push(chunk)
    queuedBytes += chunk.length
    if (queuedBytes >= QUEUED_BYTES) request.pause()
    onBytes?.()
    wake()
  }
  const onEnd = () => {
    ended = true
    wake()
  }
  const onChange = () => wake()
  request.on('data', onData).on('end', onEnd).on('error', onChange).on('close', onChange)
  signal.addEventListener('abort', onChange)
  try {
    for (;;) {
      signal.throwIfAborted()
      if (queue.length > 0) {
        // All at once: a body can come in chunks of one byte, and each would cost what a large one does.
        const chunks = queue.splice(0)
        queuedBytes = 0
        if (!ended) request.resume()
        const taken = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
        yield taken
        // Each would be a piece of its own: what comes in the same turn is waited for.
        if (taken.length < SMALL_BYTES && !ended) await nextTurn()
      } else if (ended) return
      else if (request.destroyed) throw fail('invalid_request', 'The connection closed before the body ended.')
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    request.off('data', onData).off('end', onEnd).off('error', onChange).off('close', onChange)
    signal.removeEventListener('abort', onChange)
  }
}

/** Bodies on these routes flow: nothing of Fastify's reads them first. */
export function takeBodiesAsStreams(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined))
}

/**
 * A client that is still sending must get its answer. Closing a connection with bytes unread resets it, and the answer
 * may be lost with it: so the whole answer is written, what still arrives is thrown away for a moment, in which a client
 * that reads stops sending, and only then the connection is closed. `isMeant`: which of them; the others keep theirs.
 */
export function answerBeforeTheEnd(
  app: FastifyInstance,
  isMeant: (request: FastifyRequest, reply: FastifyReply) => boolean = () => true,
): void {
  app.addHook('onSend', async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    if (request.raw.complete || !hasBody(request) || !isMeant(request, reply)) return payload
    reply.header('connection', 'close')
    if (payload !== undefined && payload !== null && typeof payload !== 'string' && !Buffer.isBuffer(payload))
      return payload
    const bytes = Buffer.from(payload ?? '')
    reply.header('content-length', bytes.length)
    return Readable.from(lingering(request.raw, bytes))
  })
}

/** Whether the request announces a body, be it read or not. */
export function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

async function* lingering(request: IncomingMessage, answer: Buffer): AsyncGenerator<Buffer> {
  if (answer.length > 0) yield answer
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, BODY_LINGER_MS)
  request.once('end', resolve).once('close', resolve)
  throwAway(request)
  await promise
  clearTimeout(timer)
}

/** Of all connections together. */
const thrownAway = createPace({ unitsPerSecond: THROWN_AWAY_BYTES_PER_SECOND, waitMs: Number.POSITIVE_INFINITY })

/** All of them together at a pace: what is read at full speed is garbage to collect at full speed, for everybody. */
function throwAway(request: IncomingMessage): void {
  request.on('data', (chunk: Buffer) => {
    request.pause()
    setTimeout(() => request.resume(), thrownAway.take('', chunk.length).waitMs)
  })
  request.resume()
}
