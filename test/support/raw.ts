// Bytes to a socket and back, for requests that no HTTP client would send.
import { once } from 'node:events'
import { connect } from 'node:net'

export interface RawReply {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  body: any
}

/** Sends the bytes and reads one answer, until the other side closes or the announced length has arrived. */
export async function sendRaw(url: string, ...parts: (string | Buffer)[]): Promise<RawReply> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  // The other side may close before it has read everything; what it said is what counts.
  socket.on('error', () => {})
  for (const part of parts) socket.write(part)
  const chunks: Buffer[] = []
  try {
    for await (const chunk of socket) {
      chunks.push(chunk as Buffer)
      const reply = parse(Buffer.concat(chunks))
      if (reply) return reply
    }
  } catch (error) {
    if (chunks.length === 0) throw error
  } finally {
    socket.destroy()
  }
  throw new Error(`no whole answer: ${Buffer.concat(chunks)}`)
}

function parse(bytes: Buffer): RawReply | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]))
  const body = bytes.subarray(end + 4)
  const length = Number(headers.get('content-length') ?? 0)
  if (body.length < length) return undefined
  const text = body.toString()
  const isJson = headers.get('content-type')?.includes('json')
  return { status: Number(statusLine.split(' ')[1]), headers, text, body: isJson ? JSON.parse(text) : text }
}
