// Bodies in very small chunks. Node parses all of a 64 KiB read at once, up to 32 reads in one turn of the event loop,
// and calls back for every chunk: 350,000 one-byte chunks block the event loop for half a second and take 200 MB of
// Buffers. So the chunks of such a body are coalesced, its connection is read only now and then, and a turn that has
// seen very many of them, on whichever connections, reads nothing more.
import { IncomingMessage } from 'node:http'
import type { Server, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { SMALL_CHUNKS, UNREAD_BODY_BYTES } from '../contract/fixed-limits.ts'
import { networkOf } from '../kit/networks.ts'
import { createPace } from '../kit/waiting/pace.ts'
import { holdSocket, releaseSocket } from './held-sockets.ts'

interface Rest {
  chunks: number
  messages: Set<ChunkedMessage>
}

/** Of the thread, whichever server they belong to. */
const sockets = new Set<Socket>()
const resting = new Map<Socket, Rest>()
const pace = createPace({ unitsPerSecond: SMALL_CHUNKS.perSecond, waitMs: Number.POSITIVE_INFINITY })
let chunksInTurn = 0

/** Its connections are among those that are not read in a turn that has had enough. */
export function limitSmallChunks(server: Server): void {
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
}

interface SmallChunks {
  count: number
  gathered: Buffer[]
  gatheredBytes: number
}

/** A request whose small chunks, after the first few, come as larger pieces. */
export class ChunkedMessage extends IncomingMessage {
  /** Made with the first of them: most requests have none (`npm run bench -- api`). */
  #small: SmallChunks | undefined

  override push(chunk: Buffer | null): boolean {
    if (chunk !== null && chunk.length < SMALL_CHUNKS.bytes) {
      this.#small ??= { count: 0, gathered: [], gatheredBytes: 0 }
      const small = this.#small
      if (++small.count > SMALL_CHUNKS.free) {
        small.gathered.push(chunk)
        small.gatheredBytes += chunk.length
        countSmallChunk(this)
        return true
      }
    }
    this.#pushGathered()
    return super.push(chunk) && this.readableLength < UNREAD_BODY_BYTES
  }

  /** What is still small waits for more, or for the end: one byte in each read would be as many pieces as bytes. */
  endTurn(): void {
    if (this.#small && this.#small.gatheredBytes >= SMALL_CHUNKS.bytes) this.#pushGathered()
  }

  #pushGathered(): void {
    const small = this.#small
    if (!small || small.gathered.length === 0) return
    super.push(Buffer.concat(small.gathered, small.gatheredBytes))
    small.gathered = []
    small.gatheredBytes = 0
  }
}

function countSmallChunk(message: ChunkedMessage): void {
  const rest = resting.get(message.socket) ?? beginRest(message.socket)
  rest.chunks++
  rest.messages.add(message)
  if (chunksInTurn === 0) setImmediate(() => (chunksInTurn = 0))
  if (++chunksInTurn === SMALL_CHUNKS.perTurn) stopReadingInThisTurn()
}

function beginRest(socket: Socket): Rest {
  const rest: Rest = { chunks: 0, messages: new Set() }
  resting.set(socket, rest)
  holdSocket(socket)
  setImmediate(() => {
    for (const message of rest.messages) message.endTurn()
    const { waitMs } = pace.take(networkOf(socket.remoteAddress ?? ''), rest.chunks)
    setTimeout(() => endRest(socket, rest), Math.max(SMALL_CHUNKS.restMs, waitMs)).unref()
  })
  return rest
}

function endRest(socket: Socket, { messages }: Rest): void {
  resting.delete(socket)
  releaseSocket(socket)
  const isFull = [...messages].some(({ complete, readableLength }) => !complete && readableLength >= UNREAD_BODY_BYTES)
  // Whoever reads a full one resumes the socket.
  if (!isFull) socket.resume()
}

/** Also those whose requests are still to come: their bodies may be in the same read. */
function stopReadingInThisTurn(): void {
  const stopped = [...sockets].filter((socket) => !resting.has(socket) && !socket.isPaused())
  for (const socket of stopped) socket.pause()
  setImmediate(() => {
    for (const socket of stopped) if (!resting.has(socket)) socket.resume()
  })
}
