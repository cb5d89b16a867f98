// One connection to a Minecraft server that sleeps: asked for its status, it answers; a player who joins wakes it.
import {
  legacyAnswer,
  loginRefusal,
  NotMinecraft,
  PACKET_MAX_BYTES,
  pongAnswer,
  readerOf,
  statusAnswer,
  takePacket,
} from './minecraft-packets.ts'

export interface VisitAnswers {
  /** In the list of servers. */
  status: string
  /** A player wants in: what they are told. */
  join(player: string): string
}

export interface Reaction {
  send: Buffer[]
  /** Nothing more is expected. */
  isOver: boolean
}

export interface Visit {
  /** Throws `NotMinecraft` at what is none. */
  receive(chunk: Buffer): Reaction
  /** Nothing has come for a while: clients before 1.6 ask by one or two bytes, and wait. */
  pause(): Reaction
}

const LEGACY_PING = 0xfe
/** The address as the player typed it; proxies and mods append to it. */
const ADDRESS_MAX_CHARS = 3000
const NAME = /^[!-~]{1,16}$/
const PAYLOAD_BYTES = 8
const NOTHING: Reaction = { send: [], isOver: false }
const over = (...send: Buffer[]): Reaction => ({ send, isOver: true })

type Stage = 'handshake' | 'status' | 'login'

export function createVisit(answers: VisitAnswers): Visit {
  let unread = Buffer.alloc(0)
  let stage: Stage = 'handshake'
  let protocol = 0
  let hasStatus = false

  const handlers: Record<Stage, (packet: Buffer) => Reaction> = {
    handshake(packet) {
      const read = readerOf(packet)
      if (read.varInt() !== 0) throw new NotMinecraft('no handshake')
      protocol = read.varInt()
      read.string(ADDRESS_MAX_CHARS)
      read.uint16()
      const next = read.varInt()
      // 3: sent here by another server.
      if (next !== 1 && next !== 2 && next !== 3) throw new NotMinecraft('an unknown wish')
      stage = next === 1 ? 'status' : 'login'
      return NOTHING
    },
    status(packet) {
      const read = readerOf(packet)
      const id = read.varInt()
      if (id === 0 && !hasStatus) {
        hasStatus = true
        return { send: [statusAnswer(protocol, answers.status)], isOver: false }
      }
      if (id === 1) return over(pongAnswer(read.bytes(PAYLOAD_BYTES)))
      throw new NotMinecraft('neither status, once, nor ping')
    },
    login(packet) {
      const read = readerOf(packet)
      if (read.varInt() !== 0) throw new NotMinecraft('no login')
      const player = read.string(PACKET_MAX_BYTES)
      if (!NAME.test(player)) throw new NotMinecraft('no name of a player')
      return over(loginRefusal(answers.join(player)))
    },
  }

  /** A packet of 254 bytes begins like the ping of an old client, whose third byte, if it has one, is another. */
  const mayBeLegacy = () =>
    stage === 'handshake' && unread[0] === LEGACY_PING && (unread.length < 2 || unread[1] === 1) && unread.length < 3

  return {
    receive(chunk) {
      unread = Buffer.concat([unread, chunk])
      if (unread.length > 2 * PACKET_MAX_BYTES) throw new NotMinecraft('too much at once')
      if (mayBeLegacy()) return NOTHING
      if (stage === 'handshake' && unread[0] === LEGACY_PING && unread[1] === 1 && unread[2] === 0xfa)
        return over(legacyAnswer(answers.status, true))
      const send: Buffer[] = []
      for (let next = takePacket(unread); next; next = takePacket(unread)) {
        unread = unread.subarray(next.end)
        const reaction = handlers[stage](next.packet)
        send.push(...reaction.send)
        if (reaction.isOver) return over(...send)
      }
      return { send, isOver: false }
    },
    pause: () => (mayBeLegacy() && unread.length > 0 ? over(legacyAnswer(answers.status, unread.length > 1)) : NOTHING),
  }
}
