// Games that are asked who plays, and answer as strangers' code may: with too much, with rubbish, without end, or not at all.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { games } from 'gamedig'
import { launchOf } from '../../../../test/support/games.ts'
import { until } from '../../../../test/support/until.ts'
import { PLAYER_NAME_MAX_CHARS, PLAYER_NAMES_MAX, PLAYER_QUERY } from '../../../contract/fixed-limits.ts'
import { SHIPPED_TEMPLATES } from '../templates/index.ts'
import { createGamePlayers } from './index.ts'
import { createQueryThread, type QueryAnswer } from './query-thread.ts'

const S = 'srv_castle'
const thread = createQueryThread()
const servers: Server[] = []
after(() => {
  thread.stop()
  for (const server of servers) server.close()
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const playOn = (onConnection: (socket: Socket) => void) =>
  listen(createServer((socket) => onConnection(socket.on('error', () => {}))))

const ask = (port: number, type = 'minecraft') => thread.ask({ type, port, isTcp: true, ports: [port] })

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; ; rest >>>= 7) {
    bytes.push(rest > 127 ? (rest & 127) | 128 : rest)
    if (rest <= 127) return Buffer.from(bytes)
  }
}

/** As Minecraft answers a status request. */
function statusOf(players: object): Buffer {
  const json = Buffer.from(JSON.stringify({ version: { name: 'x', protocol: 1 }, description: 'x', players }))
  const body = Buffer.concat([varint(0), varint(json.length), json])
  return Buffer.concat([varint(body.length), body])
}

const answering = (players: object) => playOn((socket) => socket.once('data', () => socket.write(statusOf(players))))

test('a game is asked who plays, and names those that it names', async () => {
  const port = await answering({
    max: 20,
    online: 3,
    sample: [
      { name: 'anna', id: '1' },
      { name: 'ben', id: '2' },
    ],
  })
  assert.deepEqual(await ask(port), { online: 3, max: 20, names: ['anna', 'ben'] })
  assert.deepEqual(await ask(await answering({ max: 20, online: 3 })), { online: 3, max: 20, names: null })
  assert.deepEqual(await ask(await answering({ max: 20, online: 0 })), { online: 0, max: 20, names: [] })
})

test('what a game answers is bounded, whatever it answers', async () => {
  const sample = Array.from({ length: 10_000 }, (_, n) => ({ name: `\u0007p${n}${'x'.repeat(20)}`, id: String(n) }))
  const many = await ask(await answering({ max: 1e300, online: -5, sample }))
  assert.equal(many?.names?.length, PLAYER_NAMES_MAX)
  assert.deepEqual([many?.online, many?.max], [PLAYER_NAMES_MAX, null], 'counts that make no sense are none')
  assert.ok(many?.names?.every((name) => /^p\d+x{20}$/.test(name)))
  const long = await ask(await answering({ max: 1, online: 1, sample: [{ name: 'é'.repeat(100_000), id: '1' }] }))
  assert.deepEqual(long?.names, ['é'.repeat(PLAYER_NAME_MAX_CHARS)])
  assert.equal(await ask(await answering({ max: 1, online: 1, sample: [null] })), null)
})

test('a game that is silent, sends rubbish or sends without end has no answer, and keeps nobody else from one', async () => {
  let sent = 0
  const endless = (socket: Socket) => {
    const chunk = Buffer.alloc(1024 * 1024, 0xff)
    const more = () => {
      while (!socket.destroyed && socket.write(chunk)) sent += chunk.length
    }
    socket.on('drain', more)
    more()
  }
  const bad = [
    await playOn(() => {}),
    await playOn((socket) => socket.end('rubbish')),
    await playOn((socket) => void socket.write(statusOf({ online: 'x' }).fill('{', 5))),
    await playOn(endless),
  ]
  const good = await answering({ max: 20, online: 1 })
  const answers = await Promise.all([...bad, good].map((port) => ask(port)))
  assert.deepEqual(answers, [null, null, null, null, { online: 1, max: 20, names: null }])
  assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were taken`)
})

test('The question goes to the ports of the server on loopback, and nowhere else', async () => {
  let [elsewhere, asked] = [0, 0]
  const other = await playOn((socket) => {
    elsewhere++
    socket.end()
  })
  const hostile: number = await listen(
    createHttpServer((_request, response) => {
      // To another port, and to a name that leads to its own.
      const to = asked++ === 0 ? `127.0.0.1:${other}` : `localhost:${hostile}`
      response.writeHead(302, { location: `http://${to}/v2/server/status` }).end()
    }),
  )
  for (const requests of [1, 2]) {
    assert.equal(await ask(hostile, 'protocol-terraria'), null)
    assert.deepEqual([asked, elsewhere], [requests, 0], 'a redirect to another place is not followed')
  }
  const own = await ask(other)
  assert.deepEqual([own, elsewhere], [null, 1], 'it is asked only where it is the game itself')
  // These ask a list on the internet, or a name.
  for (const type of ['minetest', 'discord', 'protocol-epic', 'constructor', '__proto__', 'nothing'])
    assert.equal(await ask(hostile, type), null)
  const outside = await thread.ask({ type: 'minecraft', port: other, isTcp: true, ports: [hostile] })
  assert.deepEqual([outside, elsewhere], [null, 1], 'a port that the server does not have')
})

test('One question at a time, and its answer counts for ten seconds', async () => {
  let now = Date.now()
  const asked: PromiseWithResolvers<QueryAnswer | null>[] = []
  const launch = launchOf({
    query: { type: 'x', port: 'query' },
    ports: [{ name: 'query', port: 1, protocol: 'udp' }],
  })
  let isRunning = true
  const players = createGamePlayers({
    ...{ isRunning: () => isRunning, launch: () => launch, now: () => now },
    ...{ consoleFolder: () => '/nowhere', recordFile: () => '/nowhere', addFact: async () => {} },
    onUnexpected: () => {},
    thread: {
      ask() {
        asked.push(Promise.withResolvers())
        return (asked.at(-1) as PromiseWithResolvers<QueryAnswer | null>).promise
      },
      stop() {},
    },
  })
  const reads = [players.read(S), players.read(S)]
  players.sample([S])
  assert.equal(asked.length, 1)
  asked[0]?.resolve({ online: 0, max: 8, names: [] })
  for (const read of reads) assert.deepEqual(await read, await players.read(S))
  assert.equal(asked.length, 1)
  assert.deepEqual(players.presence(S), { online: 0, emptySince: now })
  const emptySince = now
  now += PLAYER_QUERY.keptMs
  const later = players.read(S)
  assert.equal(asked.length, 2)
  assert.deepEqual(players.presence(S), { online: 0, emptySince })
  asked[1]?.resolve(null)
  assert.deepEqual([(await later).reason, (await later).online], ['no_answer', null])
  now += PLAYER_QUERY.sampleMs
  players.sample([S])
  assert.equal(asked.length, 3)
  asked[2]?.resolve({ online: 2, max: 8, names: null })
  await until(async () => players.presence(S).online === 2)
  assert.equal(players.presence(S).emptySince, null)
  isRunning = false
  assert.equal((await players.read(S)).reason, 'not_running')
  assert.deepEqual(players.presence(S), { online: null, emptySince: null })
  players.stop()
})

test('every shipped query is one that gamedig knows, of a port that the template has', () => {
  for (const { id, query, ports = [] } of SHIPPED_TEMPLATES) {
    if (!query) continue
    assert.ok(Object.hasOwn(games, query.type), `${id}: ${query.type}`)
    assert.ok(
      ports.some(({ name }) => name === query.port),
      `${id}: ${query.port}`,
    )
  }
})
