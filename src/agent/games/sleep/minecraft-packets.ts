// The few packets of Minecraft's protocol that a sleeping server needs: https://minecraft.wiki/w/Java_Edition_protocol.
// What is read comes from strangers: nothing is believed before it is there, and every length has a bound.

/** A handshake with the address that a proxy writes into it is below this; nothing else that is read here comes near. */
export const PACKET_MAX_BYTES = 4096
const VARINT_MAX_BYTES = 5

/** What cannot be a packet; whoever sent it is cut off. */
export class NotMinecraft extends Error {}

/** One value after the other; throws `NotMinecraft` where there is none. */
export interface PacketReader {
  varInt(): number
  string(maxChars: number): string
  uint16(): number
  bytes(count: number): Buffer
}

export function readVarInt(bytes: Buffer, at: number): { value: number; end: number } | undefined {
  let value = 0
  for (let index = 0; index < VARINT_MAX_BYTES; index++) {
    const byte = bytes[at + index]
    if (byte === undefined) return undefined
    value |= (byte & 0x7f) << (7 * index)
    if ((byte & 0x80) === 0) return { value, end: at + index + 1 }
  }
  throw new NotMinecraft('a number does not end')
}

/** The packet that the bytes begin with, without its length; undefined while it is not all there. */
export function takePacket(bytes: Buffer): { packet: Buffer; end: number } | undefined {
  const length = readVarInt(bytes, 0)
  if (!length) return undefined
  if (length.value < 1 || length.value > PACKET_MAX_BYTES) throw new NotMinecraft('the length of a packet')
  const end = length.end + length.value
  return bytes.length < end ? undefined : { packet: bytes.subarray(length.end, end), end }
}

export function readerOf(packet: Buffer): PacketReader {
  let at = 0
  function bytes(count: number): Buffer {
    if (count < 0 || at + count > packet.length) throw new NotMinecraft('a packet ends too early')
    at += count
    return packet.subarray(at - count, at)
  }
  function varInt(): number {
    const read = readVarInt(packet, at)
    if (!read) throw new NotMinecraft('a packet ends too early')
    at = read.end
    return read.value
  }
  return {
    varInt,
    bytes,
    uint16: () => bytes(2).readUInt16BE(),
    string(maxChars) {
      const text = bytes(varInt()).toString('utf8')
      if (text.length > maxChars) throw new NotMinecraft('a text is too long')
      return text
    },
  }
}

export function varInt(value: number): Buffer {
  const bytes: number[] = []
  let rest = value >>> 0
  do {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
    rest >>>= 7
  } while (rest > 0)
  return Buffer.from(bytes)
}

const packetOf = (id: number, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat([varInt(id), ...parts])
  return Buffer.concat([varInt(body.length), body])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([varInt(bytes.length), bytes])
}

/** As the list of servers shows it. The client's own version is the right one, until the game itself is asked. */
export const statusAnswer = (protocol: number, words: string): Buffer =>
  packetOf(
    0,
    text(
      JSON.stringify({
        version: { name: 'asleep', protocol },
        players: { max: 0, online: 0 },
        description: { text: words },
      }),
    ),
  )

export const pongAnswer = (payload: Buffer): Buffer => packetOf(1, payload)

/** Sends a player away who has not logged in yet, with words. */
export const loginRefusal = (words: string): Buffer => packetOf(0, text(JSON.stringify({ text: words })))

/** To clients before 1.7: `isExtended` from 1.4 on, when they ask by two bytes. */
export function legacyAnswer(words: string, isExtended: boolean): Buffer {
  const fields = isExtended ? ['§1', '127', 'asleep', words, '0', '0'].join('\0') : `${words}§0§0`
  const body = Buffer.from(fields, 'utf16le').swap16()
  const head = Buffer.alloc(3)
  head[0] = 0xff
  head.writeUInt16BE(fields.length, 1)
  return Buffer.concat([head, body])
}
