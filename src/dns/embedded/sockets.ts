// The two doors of the embedded server. What is said there is the responder's business.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, isIPv6, type Server, type Socket } from 'node:net'
import { hasCode } from '../../kit/files/errno.ts'
import { frame } from '../exchange.ts'
import type { createLimiter } from './limiter.ts'
import type { Responder } from './responder.ts'

const MAX_QUERY_BYTES = 4096
const PORT_ATTEMPTS = 20

export interface TcpLimits {
  /** A connection that has sent no whole query for this long is closed, however many bytes trickle in. */
  idleMs: number
  connections: number
  connectionsPerAddress: number
}

export interface Listening {
  host: string
  port: number
  close(): Promise<void>
}

type Judge = ReturnType<typeof createLimiter>

/** UDP and TCP on the same port. Where the system picks it, a port that is free for one may be taken for the other. */
export async function listen(
  at: { host: string; port: number },
  responder: Responder,
  judge: Judge,
  limits: TcpLimits,
): Promise<Listening> {
  for (let attempt = 1; ; attempt++) {
    const tcp = await listenTcp(at, responder, limits)
    try {
      const udp = await listenUdp({ host: at.host, port: tcp.port }, responder, judge)
      return { host: at.host, port: tcp.port, close: async () => void (await Promise.all([udp.close(), tcp.close()])) }
    } catch (error) {
      await tcp.close()
      if (at.port !== 0 || attempt === PORT_ATTEMPTS || !hasCode(error, 'EADDRINUSE')) throw error
    }
  }
}

async function listenUdp(at: { host: string; port: number }, responder: Responder, judge: Judge) {
  const socket = createSocket({
    type: isIPv6(at.host) ? 'udp6' : 'udp4',
    recvBufferSize: 1 << 20,
    sendBufferSize: 1 << 20,
    // Answers go to numeric addresses only; the usual lookup would cost each a turn of the event loop
    // (`npm run bench -- dns`).
    lookup: (address, family, done) =>
      (done as (e: null, a: string, f: number) => void)(null, address, family as never),
  })
  socket.on('message', (packet, from) => {
    if (from.port === 0) return
    const verdict = judge(from.address)
    if (verdict === 'drop') return
    const response = verdict === 'answer' ? responder.respond(packet, 'udp') : responder.slip(packet)
    if (response) socket.send(response, 0, response.length, from.port, from.address)
  })
  const bound = once(socket, 'listening')
  socket.bind(at.port, at.host)
  try {
    await bound
  } catch (error) {
    socket.close()
    throw error
  }
  // A lost datagram is the client's to repeat; the socket itself goes on.
  socket.on('error', () => {})
  return {
    async close() {
      const closed = once(socket, 'close')
      socket.close()
      await closed
    },
  }
}

async function listenTcp(at: { host: string; port: number }, responder: Responder, limits: TcpLimits) {
  const open = new Set<Socket>()
  const perAddress = new Map<string, number>()
  const server: Server = createServer((socket) => {
    const address = socket.remoteAddress ?? ''
    const held = perAddress.get(address) ?? 0
    if (open.size >= limits.connections || held >= limits.connectionsPerAddress) {
      socket.destroy()
      return
    }
    open.add(socket)
    perAddress.set(address, held + 1)
    socket.once('close', () => {
      open.delete(socket)
      const left = (perAddress.get(address) ?? 1) - 1
      if (left === 0) perAddress.delete(address)
      else perAddress.set(address, left)
    })
    converse(socket, responder, limits.idleMs)
  })
  server.listen(at.port, at.host)
  await once(server, 'listening')
  server.on('error', () => {})
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the DNS server has no port')
  return {
    port: address.port,
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Queries may follow each other without waiting. Nothing more is read from a client that does not read its answers. */
function converse(socket: Socket, responder: Responder, idleMs: number): void {
  const idle = setTimeout(() => socket.destroy(), idleMs)
  let pending: Buffer = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.once('close', () => clearTimeout(idle))
  socket.on('drain', () => socket.resume())
  socket.on('data', (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    while (pending.length >= 2) {
      const bytes = pending.readUInt16BE(0)
      if (bytes > MAX_QUERY_BYTES) return void socket.destroy()
      if (pending.length < bytes + 2) break
      const response = responder.respond(pending.subarray(2, bytes + 2), 'tcp')
      if (!response) return void socket.destroy()
      if (!socket.write(frame(response))) socket.pause()
      pending = pending.subarray(bytes + 2)
      idle.refresh()
    }
  })
}
