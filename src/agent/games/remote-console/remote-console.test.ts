// Consoles that are reached over the loopback, against real sockets that speak the protocol: well, badly, or to do harm.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer as createHttpServer } from 'node:http'
import type { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { createLineMatcher } from '../console/line-pattern.ts'
import { openRemoteConsole, RemoteFault } from './index.ts'
import { listen, packet, rconGame } from './rcon-game.testing.ts'

const inTime = () => AbortSignal.timeout(120_000)

async function rcon(answer: Parameters<typeof rconGame>[0], secret = 'secret') {
  const game = await listen(rconGame(answer))
  return { game, open: (signal = inTime()) => openRemoteConsole({ via: 'rcon', port: game.port, secret }, signal) }
}

const says = (text: string) => (error: unknown) => error instanceof RemoteFault && error.message.includes(text)

suite('RCON', () => {
  test('an answer in many packets, cut anywhere, is whole when its command is done', async () => {
    const { game, open } = await rcon(async (socket, id, text) => {
      const all =
        text === '' ? packet(id, 0, '') : Buffer.concat([packet(id, 0, 'one\ntwo'), packet(id, 0, 'Complete Save')])
      for (const byte of all) socket.write(Buffer.from([byte]))
    })
    using _game = game
    using console = await open()
    await console.send('Save')
    await console.heard.until(createLineMatcher(['^Complete Save']))
    await console.heard.until(createLineMatcher(['^two$']))
    console.heard.forget()
    const patience = new AbortController()
    using other = await open(patience.signal)
    const never = assert.rejects(other.heard.until(createLineMatcher(['^Complete Save'])), says('in time'))
    patience.abort()
    await never
  })

  test('a game that leaves the second request without an answer is done when it is silent', async () => {
    const { game, open } = await rcon((socket, id, text) => void (text !== '' && socket.write(packet(id, 0, 'Saved'))))
    using _game = game
    using console = await open()
    await console.send('save')
    await console.send('save')
  })

  test('a command without an answer is done when the second request has one', async () => {
    const { game, open } = await rcon((socket, id, text) => void (text === '' && socket.write(packet(id, 0, ''))))
    using _game = game
    using console = await open()
    await console.send('save')
  })

  test('of a long answer the last lines count', async () => {
    const { game, open } = await rcon((socket, id, text) => {
      socket.write(packet(id, 0, text === '' ? '' : `first\n${'x\n'.repeat(500)}Saved`))
    })
    using _game = game
    using console = await open()
    await console.send('save')
    await console.heard.until(createLineMatcher(['^Saved']))
  })

  test('a password that is refused, or none at all, is said', async () => {
    const { game, open } = await rcon(() => {}, 'wrong')
    using _game = game
    await assert.rejects(open(), says('refuses the password'))
    const none = openRemoteConsole({ via: 'rcon', port: game.port, secret: '' }, inTime())
    await assert.rejects(none, says('has no password'))
  })

  test('An answer that is too large, or none that the protocol has, ends the connection', async () => {
    for (const size of [-1, 9, 2 ** 30]) {
      const lie = Buffer.alloc(64)
      lie.writeInt32LE(size, 0)
      const { game, open } = await rcon((socket) => void socket.write(lie))
      using _game = game
      using console = await open()
      await assert.rejects(console.send('save'), says('does not speak RCON'))
    }
    const flood = await rcon((socket, id, text) => {
      for (let count = 0; text !== '' && count < 400; count++) socket.write(packet(id, 0, 'x'.repeat(4000)))
    })
    using _flood = flood.game
    using flooded = await flood.open()
    await assert.rejects(flooded.send('save'), says('without end'))
    const mute = await rcon(() => {})
    using _mute = mute.game
    const patience = new AbortController()
    using console = await mute.open(patience.signal)
    const unanswered = assert.rejects(console.send('save'), says('in time'))
    patience.abort()
    await unanswered
  })
})

const SECRET = 'A'.repeat(40)

const frame = (text: string, first = 0x81) => {
  const body = Buffer.from(text)
  const head =
    body.length < 126
      ? Buffer.from([first, body.length])
      : Buffer.from([first, 126, body.length >> 8, body.length & 255])
  return Buffer.concat([head, body])
}

/** A Minecraft server with the management protocol, as far as `answer` goes. */
function managementGame(answer: (socket: Socket, call: { id: number; method: string; params: unknown[] }) => void) {
  const server = createHttpServer((_, response) => void response.writeHead(404).end())
  server.on('upgrade', ({ headers }, socket: Socket) => {
    if (headers.authorization !== `Bearer ${SECRET}`) return void socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n')
    const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
    const accept = createHash('sha1').update(key).digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      for (let bytes = chunk; bytes.length > 0; bytes = bytes.subarray(6 + ((bytes[1] as number) & 127))) {
        const [size, mask] = [(bytes[1] as number) & 127, bytes.subarray(2, 6)]
        if (((bytes[0] as number) & 15) !== 1) continue
        const body = bytes.subarray(6, 6 + size).map((byte, index) => byte ^ (mask[index % 4] as number))
        answer(socket, JSON.parse(Buffer.from(body).toString('utf8')))
      }
    })
  })
  return server
}

async function management(answer: Parameters<typeof managementGame>[0], secret = SECRET) {
  const game = await listen(managementGame(answer))
  return {
    game,
    open: (signal = inTime()) => openRemoteConsole({ via: 'management', port: game.port, secret }, signal),
  }
}

suite('Minecraft’s management protocol', () => {
  test('methods are called one after the other, and what the game notifies of is heard', async () => {
    const calls: unknown[] = []
    const { game, open } = await management((socket, { id, method, params }) => {
      calls.push([method, params])
      socket.write(frame('', 0x89))
      if (method.endsWith('save')) {
        const saved = JSON.stringify({ jsonrpc: '2.0', method: 'minecraft:notification/server/saved' })
        socket.write(Buffer.concat([frame(saved.slice(0, 10), 0x01), frame(saved.slice(10), 0x80)]))
      }
      socket.write(frame(JSON.stringify({ jsonrpc: '2.0', id, result: true })))
    })
    using _game = game
    using console = await open()
    await console.send('minecraft:serversettings/autosave/set [false]')
    await console.send('minecraft:server/save [true]')
    await console.heard.until(createLineMatcher(['"minecraft:notification/server/saved"']))
    assert.deepEqual(calls, [
      ['minecraft:serversettings/autosave/set', [false]],
      ['minecraft:server/save', [true]],
    ])
  })

  test('a secret that is refused, a method that is refused, and what is no WebSocket are said', async () => {
    const refusing = await management((socket, { id }) => {
      socket.write(frame(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } })))
    })
    using game = refusing.game
    using console = await refusing.open()
    await assert.rejects(console.send('minecraft:server/save [true]'), says('refuses minecraft:server/save'))
    await assert.rejects(console.send('save everything'), says('no method'))
    const access = { via: 'management', port: game.port } as const
    await assert.rejects(openRemoteConsole({ ...access, secret: 'B' }, inTime()), says('refuses the secret'))
    await assert.rejects(openRemoteConsole({ ...access, secret: '' }, inTime()), says('has no secret'))
    const page = createHttpServer((_, response) => void response.end('hello'))
    using other = await listen(page)
    await assert.rejects(openRemoteConsole({ ...access, port: other.port, secret: 'B' }, inTime()), says('WebSocket'))
  })

  test('a frame of any size that it names, frames without end, and an end in the middle cost nothing', async () => {
    const huge = Buffer.from([0x81, 127, 0, 0, 0, 255, 0, 0, 0, 0])
    const unending = Buffer.concat(Array.from({ length: 2000 }, (_, index) => frame('x', index === 0 ? 0x01 : 0x00)))
    for (const bytes of [huge, unending]) {
      const { game, open } = await management((socket) => void socket.write(bytes))
      using _game = game
      using console = await open()
      await assert.rejects(console.send('minecraft:server/save'), says('without end'))
    }
    for (const bytes of [frame('x', 0xf1), Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0]), frame('rubbish')]) {
      const { game, open } = await management((socket) => void socket.write(bytes))
      using _game = game
      using console = await open()
      await assert.rejects(console.send('minecraft:server/save'), says('does not speak'))
    }
    const pings = Buffer.alloc(2 * 20_000, Buffer.from([0x89, 0]))
    const notices = Buffer.concat(Array.from({ length: 20_000 }, () => frame('{}')))
    for (const bytes of [pings, notices]) {
      const { game, open } = await management((socket) => void socket.pause().write(bytes))
      using _game = game
      using console = await open()
      await assert.rejects(console.send('minecraft:server/save'), says('without end'))
    }
    const ending = await management((socket) => void socket.end(Buffer.from([0x81])))
    using _game = ending.game
    using console = await ending.open()
    await assert.rejects(console.send('minecraft:server/save'), says('ended the connection'))
  })
})
