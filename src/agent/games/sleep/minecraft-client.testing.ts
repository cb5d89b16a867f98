// What a Minecraft client sends to a server that it does not know yet, byte by byte, and what it gets.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { readVarInt, takePacket, varInt } from './minecraft-packets.ts'

const PROTOCOL = 736

export const packet = (id: number, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat([varInt(id), ...parts])
  return Buffer.concat([varInt(body.length), body])
}
export const text = (value: string): Buffer => Buffer.concat([varInt(Buffer.byteLength(value)), Buffer.from(value)])
export const handshake = (next: 1 | 2 | 3, address = 'play.example.org'): Buffer =>
  packet(0, varInt(PROTOCOL), text(address), Buffer.from([0x63, 0xdd]), varInt(next))

export const STATUS_REQUEST = packet(0)
export const PING = packet(1, Buffer.from('0123456789abcdef', 'hex'))
export const loginStart = (name: string): Buffer => packet(0, text(name))

/** All that is answered until the other side hangs up, or after `enough` bytes. */
export async function ask(port: number, bytes: Buffer | readonly Buffer[], enough = Number.POSITIVE_INFINITY) {
  const socket = await open(port)
  const answered: Buffer[] = []
  let size = 0
  const done = Promise.withResolvers<void>()
  socket.on('data', (chunk: Buffer) => {
    answered.push(chunk)
    size += chunk.length
    if (size >= enough) done.resolve()
  })
  socket.once('close', () => done.resolve())
  for (const each of Array.isArray(bytes) ? bytes : [bytes as Buffer]) {
    socket.write(each)
    await new Promise(setImmediate)
  }
  await done.promise
  socket.destroy()
  return Buffer.concat(answered)
}

export async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  socket.on('error', () => {})
  return socket
}

/** The JSON of an answer that is a text: a status, or why somebody is sent away. */
export function jsonOf(answer: Buffer) {
  const taken = takePacket(answer)
  if (!taken) throw new Error('there is no whole packet')
  const id = readVarInt(taken.packet, 0)
  const length = id && readVarInt(taken.packet, id.end)
  if (!length) throw new Error('there is no text')
  return JSON.parse(taken.packet.subarray(length.end).toString('utf8'))
}
