// Who may be connected, and for how long without a word. Connections are counted in all and by address; where they are too
// many, the one that has waited longest for its next request makes room. A body that does not arrive is cut.
import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv4, isIPv6, type Server, type Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { BODY_LINGER_MS, CONNECTIONS_PER_ADDRESS_MAX, SLOW_BODY } from '../contract/limits.ts'
import { networkOf } from '../kit/networks.ts'

export interface ConnectionLimits {
  /** In all. */
  connections: number
  /** From one address, unless it is a proxy's that is trusted. */
  connectionsPerAddress: number
  /** In each window a body has to bring this many bytes, or its end. */
  body: { windowMs: number; minBytes: number }
  /** How long a body that nobody wants any more is thrown away, so that a client that still sends can read its answer. */
  lingerMs: number
}

const PER_ADDRESS_LEAST = 4

export function connectionLimits(connections: number): ConnectionLimits {
  const share = Math.floor(connections / 4)
  const connectionsPerAddress = Math.max(PER_ADDRESS_LEAST, Math.min(CONNECTIONS_PER_ADDRESS_MAX, share))
  return { connections, connectionsPerAddress, body: SLOW_BODY, lingerMs: BODY_LINGER_MS }
}

export interface Connections {
  /** To be called for every request, and when its answer is complete. */
  began(request: IncomingMessage): void
  ended(request: IncomingMessage): void
}

interface Held {
  /** What requests come over: with TLS another one than was connected, once they have shaken hands. */
  socket: Socket
  /** Of both ends; empty without TLS. */
  addresses: string
  network: string
  requests: number
  /** The last one. */
  request: IncomingMessage | undefined
  /** Where the body stood when the window began. */
  bytesRead: number
  windowBegan: number
  /** Cuts the connection where the body of a request that is answered does not end. */
  cut: NodeJS.Timeout | undefined
}

export function guardConnections(
  server: Server,
  trustedProxies: readonly string[],
  limits: ConnectionLimits,
): Connections {
  const held = new Map<Socket, Held>()
  /** Without a request under way, the one that has waited longest first; in all and by address. */
  const waiting = new Set<Held>()
  const byNetwork = new Map<string, Set<Held>>()
  const proxies = blockListOf(trustedProxies)
  const isTls = server instanceof TlsServer

  /** By their addresses: the socket that TLS makes of a connection does not say which it came from. */
  const handshaking = new Map<string, Held>()
  server.on('secureConnection', (secure: Socket) => {
    const entry = handshaking.get(addressesOf(secure))
    if (!entry || !held.delete(entry.socket)) return secure.destroy()
    handshaking.delete(entry.addresses)
    entry.socket = secure
    held.set(secure, entry)
  })

  server.on('connection', (socket: Socket) => {
    const network = proxies.isListed(socket.remoteAddress ?? '') ? '' : networkOf(socket.remoteAddress ?? '')
    const neighbours = byNetwork.get(network) ?? new Set()
    if (network !== '' && neighbours.size >= limits.connectionsPerAddress && !makeRoom(neighbours))
      return socket.destroy()
    if (held.size >= limits.connections && !makeRoom(waiting)) return socket.destroy()
    const entry: Held = {
      socket,
      addresses: isTls ? addressesOf(socket) : '',
      network,
      requests: 0,
      request: undefined,
      bytesRead: 0,
      windowBegan: 0,
      cut: undefined,
    }
    held.set(socket, entry)
    if (isTls) handshaking.set(entry.addresses, entry)
    waiting.add(entry)
    byNetwork.set(network, neighbours.add(entry))
    socket.once('close', () => forget(entry))
  })

  function forget(entry: Held): void {
    clearTimeout(entry.cut)
    held.delete(entry.socket)
    if (handshaking.get(entry.addresses) === entry) handshaking.delete(entry.addresses)
    waiting.delete(entry)
    const neighbours = byNetwork.get(entry.network)
    neighbours?.delete(entry)
    if (neighbours?.size === 0) byNetwork.delete(entry.network)
  }

  function makeRoom(among: Iterable<Held>): boolean {
    for (const entry of among) {
      if (entry.requests > 0) continue
      // At once: the next to come may arrive before the socket says that it is closed.
      forget(entry)
      entry.socket.destroy()
      return true
    }
    return false
  }

  const sweep = setInterval(() => {
    const now = performance.now()
    for (const entry of held.values()) if (entry.requests > 0 && isTooSlow(entry, now)) entry.socket.destroy()
  }, limits.body.windowMs / 4)
  sweep.unref()
  server.once('close', () => clearInterval(sweep))

  function isTooSlow(entry: Held, now: number): boolean {
    const { request, socket } = entry
    // While nobody reads, the sender is not to blame that nothing arrives.
    const isArriving = request !== undefined && !request.complete && request.readableFlowing === true
    const isWindowOver = now - entry.windowBegan >= limits.body.windowMs
    if (isArriving && !isWindowOver) return false
    const isSlow = isArriving && socket.bytesRead - entry.bytesRead < limits.body.minBytes
    entry.bytesRead = socket.bytesRead
    entry.windowBegan = now
    return isSlow
  }

  return {
    began(request) {
      const entry = held.get(request.socket)
      if (!entry) return
      // The body before it has ended, or it could not have begun.
      clearTimeout(entry.cut)
      if (entry.requests++ === 0) waiting.delete(entry)
      entry.request = request
      entry.bytesRead = request.socket.bytesRead
      entry.windowBegan = performance.now()
    },
    ended(request) {
      const entry = held.get(request.socket)
      // What came over no connection of ours has none to cut.
      if (!entry) return
      if (--entry.requests === 0) waiting.add(entry)
      if (!request.complete) cutLater(entry, request)
    },
  }

  // No listener of the socket's: a connection that is used again and again would gather them.
  function cutLater(entry: Held, request: IncomingMessage): void {
    clearTimeout(entry.cut)
    entry.cut = setTimeout(() => !request.complete && entry.socket.destroy(), limits.lingerMs)
  }
}

const addressesOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`

function blockListOf(ranges: readonly string[]) {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return {
    /** An IPv4 address that arrives at a socket of IPv6 is written as one of those; the list knows it all the same. */
    isListed: (address: string) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
  }
}
