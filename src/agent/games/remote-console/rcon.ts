// Source RCON, as Minecraft, Palworld and many others speak it. A long answer comes in several packets, and only a second request,
// whose answer comes after it, tells its end. Some games leave that one without an answer: then silence is the end. Minecraft ends
// the connection where it reads two requests at once, so the second is sent when the first is being answered.
import type { RemoteAccess } from '../../../contract/games/launch.ts'
import { connectLoopback, createInbox, readFrom, watchEnd } from './connection.ts'
import { createHeardLines, RemoteFault } from './heard-lines.ts'
import type { RemoteConsole } from './index.ts'

const TYPE = { answer: 0, command: 2, welcome: 2, password: 3 } as const
const PASSWORD_ID = 1
const REFUSED_ID = -1
/** Of the id, the type and two zeros. */
const FRAME_BYTES = 10
/** Minecraft's have 4096 UTF-16 units, which may be three bytes each. */
const PACKET_MAX_BYTES = 16 * 1024
/** Of all answers together. */
const ANSWERS_MAX_BYTES = 1024 * 1024
const SILENCE_MS = 500

interface Packet {
  id: number
  type: number
  text: string
}

function encode({ id, type, text }: Packet): Buffer {
  const body = Buffer.from(text)
  const packet = Buffer.alloc(4 + FRAME_BYTES + body.length)
  packet.writeInt32LE(FRAME_BYTES + body.length, 0)
  packet.writeInt32LE(id, 4)
  packet.writeInt32LE(type, 8)
  body.copy(packet, 12)
  return packet
}

/** Fails with a `RemoteFault` where a packet says that it is larger or smaller than any is. */
export function createPacketReader(onPacket: (packet: Packet) => void): (chunk: Buffer) => void {
  const inbox = createInbox(ANSWERS_MAX_BYTES)
  return (chunk) => {
    inbox.add(chunk)
    for (let rest = inbox.unread(); rest.length >= 4; rest = inbox.unread()) {
      const size = rest.readInt32LE(0)
      if (size < FRAME_BYTES || size > PACKET_MAX_BYTES) throw new RemoteFault('it does not speak RCON')
      if (rest.length < 4 + size) return
      const text = rest.toString('utf8', 12, 4 + size - 2)
      onPacket({ id: rest.readInt32LE(4), type: rest.readInt32LE(8), text })
      inbox.read(4 + size)
    }
  }
}

export async function openRcon({ port, secret }: RemoteAccess, signal: AbortSignal): Promise<RemoteConsole> {
  if (secret === '') throw new RemoteFault('it has no password for RCON: set the variable that its template names')
  const socket = await connectLoopback(port, signal)
  const heard = createHeardLines()
  const welcome = Promise.withResolvers<void>()
  // Where nobody waits for it any more.
  welcome.promise.catch(() => {})
  let pending: { id: number; reject(error: Error): void; heard(): void; done(): void } | undefined
  let lastId = PASSWORD_ID

  watchEnd(socket, signal, (error) => {
    heard.end(error)
    welcome.reject(error)
    pending?.reject(error)
  })

  function take({ id, type, text }: Packet): void {
    if (type === TYPE.welcome && id === REFUSED_ID) welcome.reject(new RemoteFault('it refuses the password for RCON'))
    else if (type === TYPE.welcome && id === PASSWORD_ID) welcome.resolve()
    else if (type !== TYPE.answer || !pending) return
    else if (id === pending.id + 1) pending.done()
    else if (id === pending.id) {
      heard.add(text)
      pending.heard()
    }
  }

  readFrom(socket, createPacketReader(take))

  async function send(command: string): Promise<void> {
    if (socket.destroyed) throw new RemoteFault('it ended the connection')
    lastId += 2
    const id = lastId
    let silence: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((done, reject) => {
        let hasAskedForEnd = false
        const askForEnd = () => {
          if (!hasAskedForEnd) socket.write(encode({ id: id + 1, type: TYPE.answer, text: '' }))
          hasAskedForEnd = true
        }
        const heardSome = () => {
          askForEnd()
          clearTimeout(silence)
          silence = setTimeout(done, SILENCE_MS)
        }
        pending = { id, done, reject, heard: heardSome }
        socket.write(encode({ id, type: TYPE.command, text: command }))
        // Some have no answer to a command that has nothing to say; whoever is at work on it has read it by then.
        silence = setTimeout(askForEnd, SILENCE_MS)
      })
    } finally {
      clearTimeout(silence)
      pending = undefined
    }
  }

  socket.write(encode({ id: PASSWORD_ID, type: TYPE.password, text: secret }))
  try {
    await welcome.promise
  } catch (error) {
    socket.destroy()
    throw error
  }
  return { send, heard, [Symbol.dispose]: () => void socket.destroy() }
}
