// What strangers may send to the port of a Minecraft server that sleeps.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { handshake, jsonOf, loginStart, PING, packet, STATUS_REQUEST, text } from './minecraft-client.testing.ts'
import { NotMinecraft, varInt } from './minecraft-packets.ts'
import { createVisit } from './minecraft-visit.ts'

function visit() {
  const joined: string[] = []
  const made = createVisit({
    status: 'Asleep.',
    join(player) {
      joined.push(player)
      return 'Waking.'
    },
  })
  return { ...made, joined }
}

/** In pieces of the given sizes, over and over. */
function inPieces(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const size = sizes[index % sizes.length] ?? 1
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

function receiveAll(pieces: readonly Buffer[]) {
  const { receive, joined } = visit()
  const sent: Buffer[] = []
  for (const piece of pieces) {
    const { send, isOver } = receive(piece)
    sent.push(...send)
    if (isOver) return { sent: Buffer.concat(sent), isOver, joined }
  }
  return { sent: Buffer.concat(sent), isOver: false, joined }
}

test('a status and a ping are answered, however the bytes arrive, and wake nobody', () => {
  const bytes = Buffer.concat([handshake(1), STATUS_REQUEST, PING])
  const whole = receiveAll([bytes])
  assert.deepEqual(jsonOf(whole.sent), {
    version: { name: 'asleep', protocol: 736 },
    players: { max: 0, online: 0 },
    description: { text: 'Asleep.' },
  })
  assert.ok(whole.sent.subarray(-8).equals(Buffer.from('0123456789abcdef', 'hex')), 'the ping comes back as it was')
  assert.deepEqual([whole.isOver, whole.joined], [true, []])
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (sizes) => {
      assert.deepEqual(receiveAll(inPieces(bytes, sizes)), whole)
    }),
    { numRuns: 50 },
  )
})

test('a login wakes, and the player is told', () => {
  for (const next of [2, 3] as const) {
    const { sent, isOver, joined } = receiveAll([Buffer.concat([handshake(next), loginStart('anna')])])
    assert.deepEqual([jsonOf(sent), isOver, joined], [{ text: 'Waking.' }, true, ['anna']])
  }
  // A proxy writes a lot into the address.
  const long = receiveAll([Buffer.concat([handshake(2, `play.example.org\0${'x'.repeat(2000)}`), loginStart('anna')])])
  assert.deepEqual(long.joined, ['anna'])
})

test('clients of ten years ago see it in their list too', () => {
  const words = (bytes: Buffer) => Buffer.from(bytes.subarray(3)).swap16().toString('utf16le')
  const oldest = visit()
  assert.deepEqual(oldest.receive(Buffer.from([0xfe])), { send: [], isOver: false })
  assert.equal(words(oldest.pause().send[0] as Buffer), 'Asleep.§0§0')
  const older = visit()
  older.receive(Buffer.from([0xfe, 0x01]))
  assert.equal(words(older.pause().send[0] as Buffer), '§1\x00127\0asleep\0Asleep.\x000\x000')
  const old = visit().receive(Buffer.from([0xfe, 0x01, 0xfa, 0x00, 0x0b]))
  assert.deepEqual([old.isOver, old.send[0]?.[0]], [true, 0xff])
})

test('a packet that begins like the ping of an old client is read as what it is', () => {
  const { length } = handshake(1, '')
  const bytes = handshake(1, 'x'.repeat(254 - (length - 1) - 1))
  assert.deepEqual([bytes[0], bytes[1]], [0xfe, 0x01])
  const { sent } = receiveAll([...inPieces(bytes, [1]), STATUS_REQUEST])
  assert.equal(jsonOf(sent).description.text, 'Asleep.')
})

test('what is no Minecraft is cut off, and nothing of it is kept', () => {
  const bad: Record<string, Buffer> = {
    'a web browser': Buffer.from(`GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: ${'x'.repeat(99)}\r\n\r\n`),
    'a length without end': Buffer.from('ffffffffff', 'hex'),
    'a length of two gigabytes': Buffer.from('ffffffff07', 'hex'),
    'a negative length': varInt(-1),
    'no length': varInt(0),
    'a text longer than its packet': packet(0, varInt(1), varInt(1000)),
    'a negative text': packet(0, varInt(1), varInt(-5)),
    'an unknown wish': packet(0, varInt(1), text('x'), Buffer.alloc(2), varInt(9)),
    'a name with spaces': Buffer.concat([handshake(2), loginStart('a b')]),
    'a name of a thousand letters': Buffer.concat([handshake(2), loginStart('a'.repeat(1000))]),
    'no name': Buffer.concat([handshake(2), loginStart('')]),
    'a ping without its bytes': Buffer.concat([handshake(1), packet(1)]),
    'the status twice': Buffer.concat([handshake(1), STATUS_REQUEST, STATUS_REQUEST]),
  }
  for (const [name, bytes] of Object.entries(bad)) assert.throws(() => receiveAll([bytes]), NotMinecraft, name)
})

test('bytes by chance neither wake it nor break it', () => {
  const someBytes = fc.uint8Array({ maxLength: 300 })
  fc.assert(
    fc.property(fc.array(someBytes, { maxLength: 40 }), fc.constantFrom(1, 2, 3, null), (chunks, next) => {
      const { receive, pause } = visit()
      try {
        if (next !== null) receive(handshake(next as 1))
        for (const chunk of chunks) if (receive(Buffer.from(chunk)).isOver) return
        pause()
      } catch (error) {
        assert.ok(error instanceof NotMinecraft, String(error))
      }
    }),
    { numRuns: 300 },
  )
})
