// Requests whose answer is read straight into memory of ours. Node's own client makes two buffers of each 64 KiB that come,
// and to collect them took longer than all else that a restore does (`npm run bench -- offsite`). Only the plain case is done
// here: whatever else is answered, the request is made anew by the usual client, which knows what it means.
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { asBuffer } from '../../kit/bytes.ts'

/** Of what begins an answer, and comes with it. */
const FIRST_BYTES = 64 * 1024
/** Of one read of what follows. */
const READ_BYTES = 1024 * 1024
const HEAD_BYTES_MAX = 16 * 1024
/** Providers close what is idle for longer. */
const IDLE_MS = 4000

/** As the client has signed it. */
export interface SignedRequest {
  protocol: string
  hostname: string
  port?: number
  method: string
  path: string
  query?: Readonly<Record<string, unknown>>
  headers: Readonly<Record<string, string>>
}

export interface PlainAnswer {
  statusCode: number
  headers: Record<string, string>
  /** How many bytes of `into` are its body. */
  length: number
}

export interface DirectGet extends Disposable {
  /** Undefined where the answer is no plain one: nothing but a part of `into` has changed then. */
  get(
    request: SignedRequest,
    into: Uint8Array,
    watch: { signal: AbortSignal; touch(): void },
  ): Promise<PlainAnswer | undefined>
}

interface Connection {
  socket: Socket
  reader: Reader | undefined
}

interface Reader {
  /** Where the next bytes belong; undefined while that is not known, and when all have come. */
  room(): Uint8Array | undefined
  take(bytes: Uint8Array): void
  fail(error: Error): void
}

/** The other side has closed the connection before it has said anything. */
class Unanswered extends Error {
  readonly code = 'ECONNRESET'
}

/** Of one host. */
export function createDirectGet(connectMs: number): DirectGet {
  const idle = new Set<Connection>()

  function open({ protocol, hostname, port }: SignedRequest): Connection {
    const first = Buffer.allocUnsafeSlow(FIRST_BYTES)
    const connection: Partial<Connection> = { reader: undefined }
    // Asked before each read. Whoever leaves before all has come destroys the socket: nothing is read into their memory then.
    const buffer = () => connection.reader?.room() ?? first
    const callback = (length: number, bytes: Uint8Array) => {
      if (connection.reader) connection.reader.take(bytes.subarray(0, length))
      else connection.socket?.destroy()
      return true
    }
    const host = hostname.replace(/^\[|\]$/g, '')
    const onread = { buffer, callback }
    const isTls = protocol === 'https:'
    const secure = { ALPNProtocols: ['http/1.1'], ...(isIP(host) ? {} : { servername: host }) }
    // Its types do not know `onread`, which it documents.
    const socket = isTls
      ? connectTls({ host, port: port ?? 443, ...secure, onread } as ConnectionOptions)
      : connectTcp({ host, port: port ?? 80, onread })
    const opened: Connection = Object.assign(connection, { socket, reader: undefined })
    const timer = setTimeout(() => socket.destroy(timedOut()), connectMs)
    socket.setNoDelay(true)
    socket.once(isTls ? 'secureConnect' : 'connect', () => clearTimeout(timer))
    socket.on('timeout', () => socket.destroy())
    socket.on('error', (error) => opened.reader?.fail(error))
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      clearTimeout(timer)
      idle.delete(opened)
      opened.reader?.fail(new Unanswered('the connection was closed'))
    })
    return opened
  }

  function takeIdle(): Connection | undefined {
    const [connection] = idle
    if (!connection) return undefined
    idle.delete(connection)
    connection.socket.setTimeout(0)
    connection.socket.ref()
    return connection
  }

  function keep(connection: Connection): void {
    idle.add(connection)
    connection.socket.setTimeout(IDLE_MS)
    connection.socket.unref()
  }

  async function exchange(
    connection: Connection,
    head: string,
    into: Uint8Array,
    { signal, touch }: { signal: AbortSignal; touch(): void },
  ): Promise<PlainAnswer | undefined> {
    const ended = Promise.withResolvers<PlainAnswer | undefined>()
    const stop = () => ended.reject(signal.reason)
    signal.addEventListener('abort', stop)
    connection.reader = createReader(into, touch, ended)
    connection.socket.write(head, 'latin1')
    let answer: PlainAnswer | undefined
    try {
      signal.throwIfAborted()
      answer = await ended.promise
      return answer
    } finally {
      signal.removeEventListener('abort', stop)
      connection.reader = undefined
      if (answer && answer.headers.connection !== 'close') keep(connection)
      else connection.socket.destroy()
    }
  }

  return {
    async get(request, into, watch) {
      const head = headOf(request)
      if (head === undefined) return undefined
      for (;;) {
        const kept = takeIdle()
        try {
          return await exchange(kept ?? open(request), head, into, watch)
        } catch (error) {
          // It was closed just when it was to be used again.
          if (!kept || !(error instanceof Unanswered)) throw error
        }
      }
    },
    [Symbol.dispose]() {
      for (const { socket } of idle) socket.destroy()
    },
  }
}

function createReader(
  into: Uint8Array,
  touch: () => void,
  { resolve, reject }: PromiseWithResolvers<PlainAnswer | undefined>,
): Reader {
  let head = Buffer.alloc(0)
  let answer: PlainAnswer | undefined
  let done = 0

  /** Whatever of the body came with the head; undefined while that is not complete. */
  function takeHead(bytes: Buffer): Buffer | undefined {
    head = Buffer.concat([head, bytes])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) {
      if (head.length > HEAD_BYTES_MAX) resolve(undefined)
      return undefined
    }
    answer = plainAnswer(head.toString('latin1', 0, end), into.length)
    if (!answer) resolve(undefined)
    return head.subarray(end + 4)
  }

  return {
    room() {
      if (!answer || done === answer.length) return undefined
      return into.subarray(done, Math.min(done + READ_BYTES, answer.length))
    },
    take(bytes) {
      touch()
      const isInPlace = answer !== undefined && bytes.buffer === into.buffer
      const body = answer ? bytes : takeHead(asBuffer(bytes))
      if (!answer || !body) return
      if (done + body.length > answer.length) {
        resolve(undefined)
        return
      }
      // Not `set`, which takes shared memory byte by byte.
      if (!isInPlace) asBuffer(body).copy(into, done)
      done += body.length
      if (done === answer.length) resolve(answer)
    },
    fail: (error) => reject(head.length > 0 ? Object.assign(new Error(error.message), { code: 'ECONNRESET' }) : error),
  }
}

const timedOut = () => Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })

/** Undefined where it cannot be written down as simply as that. */
function headOf({ method, path, query = {}, headers }: SignedRequest): string | undefined {
  const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`)
  const target = parameters.length > 0 ? `${path}?${parameters.join('&')}` : path
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const isPlain =
    method === 'GET' && /^[\w/.~%?&=-]+$/.test(target) && lines.every((line) => /^[\x20-\x7e]+$/.test(line))
  return isPlain ? [`GET ${target} HTTP/1.1`, ...lines, '', ''].join('\r\n') : undefined
}

/** Undefined where it says anything but that the bytes follow, so many of them. */
function plainAnswer(head: string, room: number): PlainAnswer | undefined {
  const [first = '', ...lines] = head.split('\r\n')
  const [, status] = /^HTTP\/1\.1 (200|206)(?: |$)/.exec(first) ?? []
  if (status === undefined) return undefined
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value] = /^([^\s:]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    headers[name.toLowerCase()] = value
  }
  const { 'content-length': length = '', 'transfer-encoding': transfer, connection = '' } = headers
  if (!/^\d+$/.test(length) || Number(length) > room || transfer !== undefined) return undefined
  return {
    statusCode: Number(status),
    headers: { ...headers, connection: connection.toLowerCase() },
    length: Number(length),
  }
}
