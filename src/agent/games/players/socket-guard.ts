// Keeps a thread from reaching anything but the ports of the game that it asks, on this machine. The libraries that speak to
// games follow redirects, look up names and ask master servers, and a game is a stranger's code: so the sockets themselves
// refuse, in this thread alone. Must be in place before anything else is loaded.
import { AsyncLocalStorage } from 'node:async_hooks'
import { Socket as DatagramSocket } from 'node:dgram'
import { Socket } from 'node:net'

export const LOOPBACK = '127.0.0.1'

interface Allowed {
  ports: ReadonlySet<number>
}

const CHECK_EVERY_MS = 20
const allowed = new AsyncLocalStorage<Allowed>()

/** Only within this may sockets be used, and only to these ports. */
export const withinPorts = <T>(ports: readonly number[], work: () => Promise<T>): Promise<T> =>
  allowed.run({ ports: new Set(ports) }, work)

function refusal(host: unknown, port: unknown): Error | undefined {
  const isAllowed = host === LOOPBACK && (allowed.getStore()?.ports.has(Number(port)) ?? false)
  return isAllowed ? undefined : new Error(`${String(host)}:${String(port)} is not the game that is asked`)
}

/** A connection that brings more than this many bytes is cut. */
export function guardSockets(bytesMax: number): void {
  guardStreams(bytesMax)
  guardDatagrams()
}

interface Target {
  host?: string
  port?: number
  /** Of a socket that is a file. */
  path?: string | null
}

function guardStreams(bytesMax: number): void {
  const connect = Socket.prototype.connect as (this: Socket, ...args: unknown[]) => Socket
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    const { host, port, path } = targetOf(args)
    const error = refusal(path ? `a socket at ${path}` : host, port)
    if (error) return this.destroy(error)
    const watching = setInterval(() => {
      if (this.bytesRead > bytesMax) this.destroy(new Error('it answers without end'))
    }, CHECK_EVERY_MS).unref()
    this.once('close', () => clearInterval(watching))
    return connect.apply(this, args)
  } as typeof Socket.prototype.connect
}

/** `connect` takes options, or a port and a host, or what Node itself has made of either. */
function targetOf(args: unknown[]): Target {
  const [first, second] = Array.isArray(args[0]) ? (args[0] as unknown[]) : args
  if (typeof first === 'object' && first !== null) return first as Target
  return { port: Number(first), ...(typeof second === 'string' ? { host: second } : {}) }
}

function guardDatagrams(): void {
  const { send, bind } = DatagramSocket.prototype as unknown as Record<
    'send' | 'bind',
    (this: DatagramSocket, ...args: unknown[]) => unknown
  >
  const guarded = {
    /** `send(buffer, offset, length, port, address, callback)`, as gamedig does. */
    send(this: DatagramSocket, ...args: unknown[]) {
      const error = refusal(args[4], args[3])
      if (!error) return send.apply(this, args)
      const callback = args.at(-1)
      if (typeof callback !== 'function') throw error
      return callback(error)
    },
    /** Nobody outside of the machine is heard. */
    bind(this: DatagramSocket, _port: unknown, callback: unknown) {
      return bind.call(this, { port: 0, address: LOOPBACK }, callback)
    },
    connect() {
      throw new Error('not needed')
    },
  }
  Object.assign(DatagramSocket.prototype, guarded)
}
