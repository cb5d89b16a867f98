// Minecraft's management protocol (Java edition, from 1.21.9 on): JSON-RPC 2.0 over a WebSocket, with a secret. A command is a
// method and, after a blank, its parameters as a list in JSON. What the game notifies of is heard as the JSON that it is.
import type { RemoteAccess } from '../../../contract/games/launch.ts'
import { parseManagementCall } from '../../../contract/games/management-calls.ts'
import { readFrom, watchEnd } from './connection.ts'
import { createHeardLines, RemoteFault } from './heard-lines.ts'
import type { RemoteConsole } from './index.ts'
import { createFrameReader, openWebSocket, writeText } from './web-socket.ts'

export async function openManagement({ port, secret }: RemoteAccess, signal: AbortSignal): Promise<RemoteConsole> {
  if (!/^[A-Za-z0-9]+$/.test(secret))
    throw new RemoteFault('it has no secret of letters and digits: set the variable that its template names')
  const socket = await openWebSocket({ port, headers: { authorization: `Bearer ${secret}` } }, signal)
  const heard = createHeardLines()
  let pending: { id: number; answered(message: Answer): void; reject(error: Error): void } | undefined
  let lastId = 0

  watchEnd(socket, signal, (error) => {
    heard.end(error)
    pending?.reject(error)
  })

  function take(text: string): void {
    const message = parse(text)
    if (message.id === undefined || message.id === null) heard.add(text.replaceAll(/[\r\n]+/g, ' '))
    else if (message.id === pending?.id) pending.answered(message)
  }

  readFrom(socket, createFrameReader(socket, take))

  async function send(command: string): Promise<void> {
    const call = parseManagementCall(command)
    if (!call) throw new RemoteFault('its template has a command that is no method with a list of parameters')
    if (socket.destroyed) throw new RemoteFault('it ended the connection')
    const id = ++lastId
    try {
      const { error } = await new Promise<Answer>((answered, reject) => {
        pending = { id, answered, reject }
        writeText(socket, JSON.stringify({ jsonrpc: '2.0', id, ...call }))
      })
      if (error !== undefined) throw new RemoteFault(`it refuses ${call.method}`)
    } finally {
      pending = undefined
    }
  }

  return { send, heard, [Symbol.dispose]: () => void socket.destroy() }
}

interface Answer {
  id?: unknown
  error?: unknown
}

function parse(text: string): Answer {
  try {
    const message: unknown = JSON.parse(text)
    if (typeof message === 'object' && message !== null) return message
  } catch (cause) {
    throw new RemoteFault('it does not speak JSON-RPC', { cause })
  }
  throw new RemoteFault('it does not speak JSON-RPC')
}
