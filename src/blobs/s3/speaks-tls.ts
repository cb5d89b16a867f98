// Whether TLS is spoken where plain HTTP was expected: for the sentence that says so.
import { once } from 'node:events'
import { connect } from 'node:tls'

const HANDSHAKE_MS = 3000

/** By a handshake, after which nothing is sent: whoever it is need not be trusted for that. */
export async function speaksTls(endpoint: string): Promise<boolean> {
  const { hostname, port } = new URL(endpoint)
  const host = hostname.replace(/[[\]]/g, '')
  const socket = connect({ host, port: Number(port || 80), rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(HANDSHAKE_MS) })
    return true
  } catch {
    return false
  } finally {
    socket.on('error', () => {})
    socket.destroy()
  }
}
