// A client that asks and leaves: at some byte of its request, a moment after it, or at some byte of the answer.
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { reset } from '../../../src/kit/reset.ts'

/** What is asked for: the line and headers, and the body. */
export interface Asked {
  method: string
  /** With the query. */
  path: string
  headers?: Record<string, string>
  body?: Buffer
}

export interface Leaving {
  /** The share of the request that is sent. */
  sent: number
  /** More than so many bytes of the answer are not read. It leaves at the latest once `afterMs` are over. */
  readBytes: number
  afterMs: number
  how: 'reset' | 'end' | 'half-closed'
}

/** As the bytes that go over the wire. */
export function inBytes({ method, path, headers = {}, body }: Asked, token: string): Buffer {
  const all = { host: 'x', authorization: `Bearer ${token}`, ...headers }
  const length = body ? { 'content-length': String(body.length) } : {}
  const lines = Object.entries({ ...all, ...length }).map(([name, value]) => `${name}: ${value}`)
  return Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`),
    body ?? Buffer.alloc(0),
  ])
}

/** The status of the answer, where that came before it left. */
export async function askAndLeave(url: string, bytes: Buffer, leaving: Leaving): Promise<number | undefined> {
  const { hostname, port } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  const { promise: hasLeft, resolve: leave } = Promise.withResolvers<void>()
  let read = 0
  let status: number | undefined
  socket.on('error', () => leave())
  socket.on('data', (chunk: Buffer) => {
    if (read === 0) status = Number(chunk.subarray(9, 12))
    read += chunk.length
    if (read > leaving.readBytes) leave()
  })
  socket.on('end', () => leave())
  socket.write(bytes.subarray(0, Math.ceil(bytes.length * leaving.sent)))
  if (leaving.how === 'half-closed') socket.end()
  await Promise.race([hasLeft, delay(leaving.afterMs)])
  if (leaving.how === 'reset') reset(socket)
  else socket.destroy()
  return status
}
