// The body of a request as it arrives, and how a request is answered that is refused before its body has ended.
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fail } from '../contract/errors.ts'
import { BODY_LINGER_MS, LINGERING_PER_ADDRESS_MAX, THROWN_AWAY } from '../contract/fixed-limits.ts'
import { networkOf } from '../kit/networks.ts'
import { createPace } from '../kit/waiting/pace.ts'
import { holdSocket, releaseSocket } from './held-sockets.ts'

const QUEUED_BYTES = 64 * 1024
/** Node reads no more at once. */
const READ_BYTES = 64 * 1024

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
        const chunks = queue.splice(0)
        queuedBytes = 0
        if (!ended) request.resume()
        yield chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
      } else if (ended) return
      else if (request.destroyed) throw fail('invalid_request', 'The connection closed before the body ended.')
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    request.off('data', onData).off('end', onEnd).off('error', onChange).off('close', onChange)
    // Flowing, it would be read to its end, at full speed and for nobody.
    if (!ended) leaveUnread(request)
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
  // With a callback: a promise here would be one more turn of every answer (`npm run bench -- api`).
  app.addHook('onSend', (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Sent) => {
    if (request.raw.complete || !hasBody(request) || !isMeant(request, reply)) return done(null, payload)
    reply.header('connection', 'close')
    if (payload !== undefined && payload !== null && typeof payload !== 'string' && !Buffer.isBuffer(payload))
      return done(null, payload)
    const bytes = Buffer.from(payload ?? '')
    reply.header('content-length', bytes.length)
    done(null, Readable.from(lingering(request.raw, bytes)))
  })
}

type Sent = (error: null, payload: unknown) => void

/** Whether the request announces a body, be it read or not. */
export function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

async function* lingering(request: IncomingMessage, answer: Buffer): AsyncGenerator<Buffer> {
  if (answer.length > 0) yield answer
  const { promise, resolve } = Promise.withResolvers<void>()
  using _place = takePlace(networkOf(request.socket.remoteAddress ?? ''), resolve)
  const timer = setTimeout(resolve, BODY_LINGER_MS)
  request.once('end', resolve).once('close', resolve)
  throwAway(request)
  await promise
  clearTimeout(timer)
}

/** By address, those that linger, the one that began first before the others. */
const places = new Map<string, Set<() => void>>()

/** Each of them holds what has arrived of its body: whoever is refused again and again would have the memory of hundreds. */
function takePlace(network: string, giveWay: () => void): Disposable {
  const taken = places.get(network) ?? new Set()
  places.set(network, taken.add(giveWay))
  const [first] = taken
  if (taken.size > LINGERING_PER_ADDRESS_MAX && first) {
    taken.delete(first)
    first()
  }
  return {
    [Symbol.dispose]() {
      taken.delete(giveWay)
      if (taken.size === 0 && places.get(network) === taken) places.delete(network)
    },
  }
}

/** Those of which something may still come, and nothing is read. */
const leftUnread = new WeakSet<IncomingMessage>()

function leaveUnread(request: IncomingMessage): void {
  request.pause()
  if (request.complete || leftUnread.has(request)) return
  leftUnread.add(request)
  holdSocket(request.socket)
}

/** To be called when the answer is complete: Node would drop what nobody has read, chunk by chunk and at full speed. */
export function throwAwayUnread(request: IncomingMessage): void {
  if (leftUnread.has(request) || (!request.complete && !request.readableFlowing)) throwAway(request)
}

const thrownAway = createPace({
  unitsPerSecond: THROWN_AWAY.bytesPerSecond,
  burst: THROWN_AWAY.burstBytes,
  waitMs: BODY_LINGER_MS,
})

/**
 * How long a new connection from there is to be left unread: until it is its turn, where more was refused than is read at once.
 * What comes with its first headers is read before anybody can know that it is refused.
 */
export const waitOfRefused = (network: string): number => Math.min(thrownAway.take(network, 0).waitMs, BODY_LINGER_MS)

/**
 * All of an address together at a pace, since what is read at full speed is garbage to collect at full speed, for everybody.
 * What would have to wait for longer than its connection is kept is not read.
 */
function throwAway(request: IncomingMessage): void {
  const { socket } = request
  const network = networkOf(socket.remoteAddress ?? '')
  const readNext = () => {
    const { waitMs, isTaken } = thrownAway.take(network, READ_BYTES)
    if (isTaken) setTimeout(read, waitMs)
  }
  const read = () => {
    if (leftUnread.delete(request)) releaseSocket(socket)
    request.resume()
    // A request that was injected, not sent, has something else in its place.
    if (socket instanceof Socket) socket.resume()
  }
  request.on('data', () => {
    request.pause()
    readNext()
  })
  readNext()
}
