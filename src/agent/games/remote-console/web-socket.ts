// The client's half of a WebSocket, with texts of bounded size and no extensions: a game that sends a frame without end, or one
// that unpacks to more than there is memory, is cut off (RFC 6455).
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { createInbox, ENDLESS, LOOPBACK } from './connection.ts'
import { RemoteFault } from './heard-lines.ts'

const MESSAGE_MAX_BYTES = 256 * 1024
const MESSAGE_MAX_FRAMES = 1000
/** Of a whole connection. Each frame costs, also an empty one: a ping is answered, whether or not the game reads. */
const TOTAL_MAX_FRAMES = 10_000
const TOTAL_MAX_BYTES = 8 * 1024 * 1024
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const OPCODE = { more: 0, text: 1, close: 8, ping: 9, pong: 10 } as const
const FINAL = 0x80
const MASKED = 0x80
const NOT_SPOKEN = 'it does not speak WebSocket'

/** Fails with a `RemoteFault`. What came with the answer is given back to the socket. */
export function openWebSocket(
  { port, headers }: { port: number; headers: Record<string, string> },
  signal: AbortSignal,
): Promise<Socket> {
  const key = randomBytes(16).toString('base64')
  const accepted = createHash('sha1')
    .update(key + GUID)
    .digest('base64')
  return new Promise((resolve, reject) => {
    const fault = (message: string, cause?: unknown) => reject(new RemoteFault(message, { cause }))
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const opening = request({
      ...{ host: LOOPBACK, port, path: '/', signal, agent: false },
      headers: { ...headers, ...upgrade, 'sec-websocket-key': key },
    })
    opening.once('error', (error) => fault(`nothing answers at port ${port}`, error))
    opening.once('response', (response) => {
      response.destroy()
      const isRefused = response.statusCode === 401 || response.statusCode === 403
      fault(isRefused ? 'it refuses the secret' : NOT_SPOKEN)
    })
    opening.once('upgrade', (response, socket: Socket, head) => {
      socket.on('error', () => socket.destroy())
      if (response.headers['sec-websocket-accept'] !== accepted) {
        socket.destroy()
        return fault(NOT_SPOKEN)
      }
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    opening.end()
  })
}

export const writeText = (socket: Socket, text: string): void => writeFrame(socket, OPCODE.text, Buffer.from(text))

function writeFrame(socket: Socket, opcode: number, body: Buffer): void {
  const mask = randomBytes(4)
  const masked = Buffer.from(body.map((byte, index) => byte ^ (mask[index % 4] as number)))
  const head = Buffer.alloc(body.length < 126 ? 2 : 4)
  head[0] = FINAL | opcode
  head[1] = MASKED | Math.min(body.length, 126)
  if (head.length === 4) head.writeUInt16BE(body.length, 2)
  socket.write(Buffer.concat([head, mask, masked]))
}

/** Fails with a `RemoteFault` where what comes is no frame, or too large. */
export function createFrameReader(socket: Socket, onText: (text: string) => void): (chunk: Buffer) => void {
  const inbox = createInbox(TOTAL_MAX_BYTES)
  let parts: Buffer[] = []
  let frames = 0

  function take(opcode: number, isFinal: boolean, body: Buffer): void {
    if (opcode === OPCODE.close) socket.end()
    if (opcode === OPCODE.ping) writeFrame(socket, OPCODE.pong, body.subarray(0, 125))
    if (opcode >= OPCODE.close) return
    if (opcode !== (parts.length > 0 ? OPCODE.more : OPCODE.text)) throw new RemoteFault(NOT_SPOKEN)
    parts.push(body)
    const bytes = parts.reduce((sum, { length }) => sum + length, 0)
    if (bytes > MESSAGE_MAX_BYTES || parts.length > MESSAGE_MAX_FRAMES) throw new RemoteFault(ENDLESS)
    if (!isFinal) return
    const whole = Buffer.concat(parts)
    parts = []
    onText(whole.toString('utf8'))
  }

  return (chunk) => {
    inbox.add(chunk)
    for (let frame = nextFrame(inbox.unread()); frame; frame = nextFrame(inbox.unread())) {
      if (++frames > TOTAL_MAX_FRAMES) throw new RemoteFault(ENDLESS)
      inbox.read(frame.end)
      take(frame.opcode, frame.isFinal, frame.body)
    }
  }
}

/** Undefined until all of it is there. */
function nextFrame(bytes: Buffer) {
  if (bytes.length < 2) return undefined
  const [first, second] = bytes as unknown as [number, number]
  // Reserved bits are those of extensions; what a server masks is no frame of a server.
  if ((first & 0x70) !== 0 || (second & MASKED) !== 0) throw new RemoteFault(NOT_SPOKEN)
  const short = second & 0x7f
  const begin = short < 126 ? 2 : short === 126 ? 4 : 10
  if (bytes.length < begin) return undefined
  const size = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  if (size > MESSAGE_MAX_BYTES) throw new RemoteFault(ENDLESS)
  const end = begin + size
  if (bytes.length < end) return undefined
  return { opcode: first & 0x0f, isFinal: (first & FINAL) !== 0, body: Buffer.from(bytes.subarray(begin, end)), end }
}
