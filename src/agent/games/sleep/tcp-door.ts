// A door over TCP. It talks to anybody, so a connection has little time and few bytes, an address has few connections, and where
// there are too many the oldest goes: nobody keeps others out by holding on.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { SLEEP_DOOR } from '../../../contract/fixed-limits.ts'
import { reset } from '../../../kit/reset.ts'
import type { Door, OnKnock } from './door.ts'
import { createVisit } from './minecraft-visit.ts'

const ASLEEP = 'Asleep. Join to wake it up.'
const WAKING = 'The server was asleep and wakes up now. Join again in a moment.'
const REFUSED = 'The server is asleep and cannot start at the moment. Try again later.'
/** Clients before 1.6 send a byte or two, and wait. */
const PAUSE_MS = 300
/** For the words to arrive, and for the client to hang up. */
const GOODBYE_MS = 1000

type Visitor = (socket: Socket, goodbye: (words: Buffer) => void) => void

export const openMinecraftDoor = (port: number, onKnock: OnKnock): Promise<Door> =>
  listen(port, (socket, goodbye) => {
    const address = addressOf(socket)
    const visit = createVisit({
      status: ASLEEP,
      join: (player) => (onKnock({ address, player }) === 'waking' ? WAKING : REFUSED),
    })
    let bytes = 0
    const pause = setTimeout(() => react(visit.pause), PAUSE_MS)
    socket.once('close', () => clearTimeout(pause))
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > SLEEP_DOOR.bytesMax) reset(socket)
      else react(() => visit.receive(chunk))
    })
    function react(step: () => ReturnType<typeof visit.pause>): void {
      if (socket.destroyed || leaving.has(socket)) return
      try {
        const { send, isOver } = step()
        if (isOver) goodbye(Buffer.concat(send))
        else for (const answer of send) socket.write(answer)
      } catch {
        // It does not speak Minecraft.
        reset(socket)
      }
    }
  })

/** For games of whose protocol nothing is known: who connects wants to play. */
export const openTcpDoor = (port: number, onKnock: OnKnock): Promise<Door> =>
  listen(port, (socket) => {
    onKnock({ address: addressOf(socket), player: null })
    reset(socket)
  })

const addressOf = ({ remoteAddress = '' }: Socket) => remoteAddress.replace(/^::ffff:/, '')

async function listen(port: number, visitor: Visitor): Promise<Door> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
    sockets.add(socket)
    makeRoom(sockets, addressOf(socket))
    if (socket.destroyed) return
    socket.setTimeout(0)
    const late = setTimeout(() => reset(socket), SLEEP_DOOR.connectionMs)
    late.unref()
    socket.once('close', () => clearTimeout(late))
    visitor(socket, (words) => sayGoodbye(socket, words))
  })
  server.listen({ port, exclusive: true })
  await once(server, 'listening')
  // The service may end whoever is at the door.
  server.unref()
  // Too many descriptors, say: the next one may have luck.
  server.on('error', () => {})
  return {
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) if (!leaving.has(socket)) reset(socket)
      await closed
    },
  }
}

/** Those who have been told, and are on their way out. */
const leaving = new WeakSet<Socket>()

function sayGoodbye(socket: Socket, words: Buffer): void {
  leaving.add(socket)
  // What else it sends is not read, but its end is.
  socket.removeAllListeners('data').resume()
  socket.end(words)
  const late = setTimeout(() => reset(socket), GOODBYE_MS)
  socket.once('close', () => clearTimeout(late))
}

function makeRoom(sockets: ReadonlySet<Socket>, address: string): void {
  const ofAddress = [...sockets].filter((socket) => addressOf(socket) === address)
  const isAddressFull = ofAddress.length > SLEEP_DOOR.connectionsPerAddress
  if (!isAddressFull && sockets.size <= SLEEP_DOOR.connections) return
  const [oldest] = isAddressFull ? ofAddress : sockets
  if (oldest) reset(oldest)
}
