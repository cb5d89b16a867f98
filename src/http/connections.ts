// Limits connections, and how long they may be idle. Connections are counted in total and per address; at the limit,
// the one that has been idle longest is closed. A body that stalls is cut off, and so is a response that nobody reads.
// A connection has one request under way, so each connection holds the resources of at most one request.
import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv4, isIPv6, type Server, type Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import {
  BODY_LINGER_MS,
  CONNECTIONS_PER_ADDRESS_MAX,
  PIPELINED_MAX,
  SLOW_CLIENT,
  UNREAD_ANSWER_MS,
} from '../contract/fixed-limits.ts'
import { networkOf } from '../kit/networks.ts'
import { waitOfRefused } from './bodies.ts'
import { holdSocket, releaseSocket } from './held-sockets.ts'

export interface ConnectionLimits {
  /** In all. */
  connections: number
  /** From one address, unless it is a proxy's that is trusted. */
  connectionsPerAddress: number
  /** In each window a body has to bring this many bytes, or its end. */
  pace: { windowMs: number; minBytes: number }
  /** An answer that waits for its reader has to get rid of a part of it in this time. */
  unreadMs: number
  /** How long a body that nobody wants any more is thrown away, so that a client that still sends can read its answer. */
  lingerMs: number
  /** Requests on one connection that wait for the answers before them. */
  pipelined: number
}

const PER_ADDRESS_LEAST = 4

export function connectionLimits(connections: number): ConnectionLimits {
  const share = Math.floor(connections / 4)
  const connectionsPerAddress = Math.max(PER_ADDRESS_LEAST, Math.min(CONNECTIONS_PER_ADDRESS_MAX, share))
  return {
    connections,
    connectionsPerAddress,
    pace: SLOW_CLIENT,
    unreadMs: UNREAD_ANSWER_MS,
    lingerMs: BODY_LINGER_MS,
    pipelined: PIPELINED_MAX,
  }
}

export interface Connections {
  /** To be called for every request. `begin` is when those before it on its connection are answered; never if it is cut. */
  arrived(request: IncomingMessage, begin: () => void): void
  /** Its answer is complete. */
  ended(request: IncomingMessage): void
}

/** Bytes that have to move, and where they stood when it began. */
interface Window {
  began: number
  bytes: number
}

interface Held {
  /** What requests come over: with TLS another one than was connected, once they have shaken hands. */
  socket: Socket
  /** Of both ends; empty without TLS. */
  addresses: string
  network: string
  /** The one under way. */
  request: IncomingMessage | undefined
  /** Those after it. */
  pipelined: { request: IncomingMessage; begin: () => void }[]
  read: Window
  sent: Window
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
    awaitTurn(entry)
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
      request: undefined,
      pipelined: [],
      read: { began: 0, bytes: 0 },
      sent: { began: 0, bytes: 0 },
      cut: undefined,
    }
    held.set(socket, entry)
    if (isTls) handshaking.set(entry.addresses, entry)
    waiting.add(entry)
    byNetwork.set(network, neighbours.add(entry))
    socket.once('close', () => forget(entry))
    if (!isTls) awaitTurn(entry)
  })

  /** Those behind a proxy are not known apart. */
  function awaitTurn({ socket, network }: Held): void {
    const waitMs = network === '' ? 0 : waitOfRefused(network)
    if (waitMs <= 0) return
    // Once Node has made it flow, and before the first of it can have been read.
    setImmediate(() => holdSocket(socket))
    setTimeout(() => {
      releaseSocket(socket)
      socket.resume()
    }, waitMs).unref()
  }

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
      if (entry.request) continue
      // At once: the next to come may arrive before the socket says that it is closed.
      forget(entry)
      entry.socket.destroy()
      return true
    }
    return false
  }

  const sweep = setInterval(() => {
    const now = performance.now()
    for (const entry of held.values())
      if (entry.request && (sendsTooSlowly(entry, now) || readsTooSlowly(entry, now))) entry.socket.destroy()
  }, Math.min(limits.pace.windowMs, limits.unreadMs) / 4)
  sweep.unref()
  server.once('close', () => clearInterval(sweep))

  function sendsTooSlowly({ request, socket, read }: Held, now: number): boolean {
    // While nobody reads, the sender is not to blame that nothing arrives.
    const isDue = request !== undefined && !request.complete && request.readableFlowing === true
    return isTooSlow(read, socket.bytesRead, isDue, now, limits.pace)
  }

  function readsTooSlowly({ socket, sent }: Held, now: number): boolean {
    // While nothing waits to be sent, the reader is not to blame.
    const waitingBytes = socket.writableLength
    // It moves by whole writes, and only when a good part of the system's buffers has become free.
    const pace = { windowMs: limits.unreadMs, minBytes: 1 }
    return isTooSlow(sent, socket.bytesWritten - waitingBytes, waitingBytes > 0, now, pace)
  }

  function isTooSlow(
    window: Window,
    bytes: number,
    isDue: boolean,
    now: number,
    { windowMs, minBytes }: ConnectionLimits['pace'],
  ): boolean {
    if (isDue && now - window.began < windowMs) return false
    const isSlow = isDue && bytes - window.bytes < minBytes
    Object.assign(window, { began: now, bytes })
    return isSlow
  }

  function begin(entry: Held, request: IncomingMessage): void {
    const { socket } = entry
    // The body before it has ended, or it could not have begun.
    clearTimeout(entry.cut)
    waiting.delete(entry)
    entry.request = request
    const began = performance.now()
    entry.read = { began, bytes: socket.bytesRead }
    entry.sent = { began, bytes: socket.bytesWritten - socket.writableLength }
  }

  function endedOn(entry: Held): void {
    entry.request = undefined
    const next = entry.socket.destroyed ? undefined : entry.pipelined.shift()
    if (!next) return void waiting.add(entry)
    begin(entry, next.request)
    next.begin()
  }

  return {
    arrived(request, proceed) {
      const entry = held.get(request.socket)
      if (!entry) return proceed()
      if (entry.request) {
        if (entry.pipelined.length >= limits.pipelined) return void entry.socket.destroy()
        return void entry.pipelined.push({ request, begin: proceed })
      }
      begin(entry, request)
      proceed()
    },
    ended(request) {
      const entry = held.get(request.socket)
      // What came over no connection of ours has none to cut.
      if (!entry) return
      if (!request.complete) cutLater(entry, request)
      if (entry.request === request) endedOn(entry)
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
