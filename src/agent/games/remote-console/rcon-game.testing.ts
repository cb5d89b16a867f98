// A game that speaks RCON on a port of the loopback, for tests.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

export async function listen(server: Server) {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

export const packet = (id: number, type: number, text: string) => {
  const bytes = Buffer.alloc(14 + Buffer.byteLength(text))
  bytes.writeInt32LE(bytes.length - 4, 0)
  bytes.writeInt32LE(id, 4)
  bytes.writeInt32LE(type, 8)
  bytes.write(text, 12)
  return bytes
}

/** A thread of a game that has other work in between. */
const BUSY_MS = 5

/** A game with the password `secret`. As Minecraft does, it ends a connection where it reads more than one packet at once. */
export const rconGame = (answer: (socket: Socket, id: number, text: string) => void) =>
  createServer((socket) => {
    const read = () => {
      const bytes: Buffer | null = socket.read()
      if (bytes === null) return
      if (bytes.length !== 4 + bytes.readInt32LE(0)) return void socket.destroy()
      const [id, type] = [bytes.readInt32LE(4), bytes.readInt32LE(8)]
      const text = bytes.toString('utf8', 12, 2 + bytes.readInt32LE(0))
      if (type === 3) socket.write(packet(text === 'secret' ? id : -1, 2, ''))
      else answer(socket, id, type === 0 ? '' : text)
    }
    socket.on('readable', () => setTimeout(read, BUSY_MS))
  })
