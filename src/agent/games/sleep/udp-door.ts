// A door over UDP: the first packet that is more than a question wakes the game. Nothing is ever answered, so nobody can make
// this machine send to somebody else.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { hasCode } from '../../../kit/files/errno.ts'
import type { Door, OnKnock } from './door.ts'

export async function openUdpDoor(port: number, onKnock: OnKnock): Promise<Door> {
  const socket = await bind(port)
  socket.unref()
  socket.on('error', () => {})
  socket.on('message', (packet, { address }) => {
    if (!isQuestion(packet)) onKnock({ address: address.replace(/^::ffff:/, ''), player: null })
  })
  return {
    async close() {
      const closed = once(socket, 'close')
      socket.close()
      await closed
    },
  }
}

/** For both kinds of addresses where the machine has both. */
async function bind(port: number): Promise<Socket> {
  try {
    return await bindAs('udp6', port)
  } catch (error) {
    if (!hasCode(error, 'EAFNOSUPPORT') && !hasCode(error, 'EADDRNOTAVAIL') && !hasCode(error, 'EINVAL')) throw error
    return bindAs('udp4', port)
  }
}

async function bindAs(type: 'udp4' | 'udp6', port: number): Promise<Socket> {
  const socket = createSocket(type)
  try {
    socket.bind({ port, exclusive: true })
    await once(socket, 'listening')
    return socket
  } catch (error) {
    socket.close()
    throw error
  }
}

const CONNECTIONLESS = 0xffffffff
/** Of Valve's games: info, players, rules, a challenge for them, and the ping of old ones. */
const VALVE_QUESTIONS: ReadonlySet<string> = new Set(['T', 'U', 'V', 'W', 'i'])
/** RakNet, which Bedrock speaks: a ping that means no more than that a list of servers is open. */
const RAKNET_PINGS: ReadonlySet<number> = new Set([0x01, 0x02])
const RAKNET_MAGIC = Buffer.from('00ffff00fefefefefdfdfdfd12345678', 'hex')
const RAKNET_MAGIC_AT = 9

/** Lists of servers, and those who scan the net, ask; that is not to play. */
export function isQuestion(packet: Buffer): boolean {
  if (packet.length === 0) return true
  if (packet.length > 4 && packet.readUInt32BE() === CONNECTIONLESS)
    return VALVE_QUESTIONS.has(String.fromCharCode(packet[4] as number))
  return (
    RAKNET_PINGS.has(packet[0] as number) &&
    packet.subarray(RAKNET_MAGIC_AT, RAKNET_MAGIC_AT + RAKNET_MAGIC.length).equals(RAKNET_MAGIC)
  )
}
