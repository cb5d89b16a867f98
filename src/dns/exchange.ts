// One message out, one or more back, over UDP or TCP. Knows framing and ids, nothing of what is asked.
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Endpoint } from './provider.ts'

const FIRST_RETRY_MS = 400
const MAX_RETRY_MS = 2_000

/** Asks again, ever less often, until the signal fires. An answer counts only if it comes from whom we asked. */
export async function exchangeUdp(server: Endpoint, query: Buffer, signal: AbortSignal): Promise<Buffer> {
  signal.throwIfAborted()
  const { address, family } = await lookup(server.host)
  signal.throwIfAborted()
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
  const done = new AbortController()
  try {
    await connected(socket, { host: address, port: server.port }, AbortSignal.any([signal, done.signal]))
    let waitMs = FIRST_RETRY_MS
    let timer: NodeJS.Timeout | undefined
    const resend = () => {
      socket.send(query)
      timer = setTimeout(resend, waitMs)
      waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)
    }
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        socket.on('error', reject)
        socket.on('message', (answer) => answers(answer, query) && resolve(answer))
        signal.addEventListener('abort', () => reject(signal.reason), { signal: done.signal })
        resend()
      })
    } finally {
      clearTimeout(timer)
    }
  } finally {
    done.abort()
    socket.close()
  }
}

async function connected(socket: ReturnType<typeof createSocket>, server: Endpoint, signal: AbortSignal) {
  const ready = once(socket, 'connect', { signal })
  socket.connect(server.port, server.host)
  await ready
}

/** Yields the answers to a query in order; a transfer has several. Breaking off the loop closes the connection. */
export async function* exchangeTcp(server: Endpoint, query: Buffer, signal: AbortSignal): AsyncGenerator<Buffer> {
  signal.throwIfAborted()
  const socket = connect({ host: server.host, port: server.port })
  const abort = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    socket.write(frame(query))
    for await (const answer of framed(socket)) {
      if (answers(answer, query)) yield answer
    }
    throw Object.assign(new Error('the server closed the connection'), { code: 'ECONNRESET' })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
    socket.destroy()
  }
}

export function frame(message: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(message.length + 2)
  framed.writeUInt16BE(message.length)
  message.copy(framed, 2)
  return framed
}

async function* framed(socket: Socket): AsyncGenerator<Buffer> {
  let pending: Buffer = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    while (pending.length >= 2 && pending.length >= pending.readUInt16BE(0) + 2) {
      const end = pending.readUInt16BE(0) + 2
      yield pending.subarray(2, end)
      pending = pending.subarray(end)
    }
  }
}

function answers(answer: Buffer, query: Buffer): boolean {
  return answer.length >= 12 && answer.readUInt16BE(0) === query.readUInt16BE(0) && (answer.readUInt8(2) & 0x80) !== 0
}
