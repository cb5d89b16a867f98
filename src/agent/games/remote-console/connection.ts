// A connection to a game on this machine. Whoever speaks over it is told of its end exactly once, whatever that was.
import { connect, type Socket } from 'node:net'
import { RemoteFault } from './heard-lines.ts'

export const LOOPBACK = '127.0.0.1'

/** Told of the end once; the signal is one. */
export function watchEnd(socket: Socket, signal: AbortSignal, ended: (error: RemoteFault) => void): void {
  const abort = () => socket.destroy()
  signal.addEventListener('abort', abort, { once: true })
  let reason: Error | undefined
  socket.once('error', (error) => {
    reason = error
  })
  socket.once('close', () => {
    signal.removeEventListener('abort', abort)
    const why = signal.aborted ? 'it did not answer in time' : 'it ended the connection'
    ended(reason instanceof RemoteFault ? reason : new RemoteFault(why, { cause: reason }))
  })
  if (signal.aborted) abort()
}

/** A reader that fails ends the connection. */
export function readFrom(socket: Socket, read: (chunk: Buffer) => void): void {
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk)
    } catch (error) {
      socket.destroy(error as RemoteFault)
    }
  })
}

/** What has come and was not read yet. A byte at a time costs no more than all of them at once. */
export interface Inbox {
  /** Fails with a `RemoteFault` once more has come than anybody needs to say. */
  add(chunk: Buffer): void
  unread(): Buffer
  read(count: number): void
}

export function createInbox(totalMaxBytes: number): Inbox {
  let bytes = Buffer.alloc(4096)
  let [begin, end, total] = [0, 0, 0]
  return {
    add(chunk) {
      total += chunk.length
      if (total > totalMaxBytes) throw new RemoteFault(ENDLESS)
      bytes.copyWithin(0, begin, end)
      ;[begin, end] = [0, end - begin]
      if (end + chunk.length > bytes.length) {
        const larger = Buffer.alloc(2 * (end + chunk.length))
        bytes.copy(larger, 0, 0, end)
        bytes = larger
      }
      end += chunk.copy(bytes, end)
    },
    unread: () => bytes.subarray(begin, end),
    read(count) {
      begin += count
    },
  }
}

export const ENDLESS = 'it answers without end'

export function connectLoopback(port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: LOOPBACK, port, signal })
    socket.once('connect', () => resolve(socket))
    socket.once('error', (cause) => reject(new RemoteFault(`nothing answers at port ${port}`, { cause })))
  })
}
