// A thread that asks games who plays. Whatever a game answers, it is this thread that reads it; what leaves it is small.
import { parentPort } from 'node:worker_threads'
import {
  PLAYER_ANSWER_MAX_BYTES,
  PLAYER_NAME_MAX_CHARS,
  PLAYER_NAMES_MAX,
  PLAYER_QUERY,
} from '../../../contract/fixed-limits.ts'
import { cleanName } from './player-patterns.ts'
import type { QueryOrder, QueryReply } from './query-thread.ts'
import { guardSockets, LOOPBACK, withinPorts } from './socket-guard.ts'

guardSockets(PLAYER_ANSWER_MAX_BYTES)
const { GameDig } = await import('gamedig')

const COUNT_MAX = 1_000_000
/** For one packet: some protocols take several, and some try what a game does not speak first. */
const PACKET_TIMEOUT_MS = 900

// What is left of a question that nobody waits for any more.
process.on('uncaughtException', () => {})
process.on('unhandledRejection', () => {})

parentPort?.on('message', (order: QueryOrder) => {
  void ask(order).then(
    (answer) => reply({ id: order.id, answer }),
    () => reply({ id: order.id, answer: null }),
  )
})

parentPort?.postMessage('ready')

const reply = (said: QueryReply) => parentPort?.postMessage(said)

/** The server list of Minecraft, without the two protocols that only others of its kind speak, and which are waited for. */
const protocolOf = ({ type, isTcp }: QueryOrder) => (type === 'minecraft' && isTcp ? 'protocol-minecraftvanilla' : type)

async function ask(order: QueryOrder): Promise<QueryReply['answer']> {
  const { port, ports } = order
  // Each with a socket of its own: what a game goes on sending ends with the question.
  const asking = new GameDig()
  try {
    const state = await withinPorts(ports, () =>
      asking.query({
        type: protocolOf(order),
        host: LOOPBACK,
        address: LOOPBACK,
        port,
        givenPortOnly: true,
        ipFamily: 4,
        maxRetries: 1,
        portCache: false,
        socketTimeout: PACKET_TIMEOUT_MS,
        attemptTimeout: PLAYER_QUERY.timeoutMs,
      }),
    )
    const names = namesOf(state.players)
    const online = countOf(state.numplayers) ?? names.length
    return { online, max: countOf(state.maxplayers) || null, names: online > 0 && names.length === 0 ? null : names }
  } finally {
    asking.queryRunner.udpSocket.socket?.close()
  }
}

function countOf(said: unknown): number | null {
  const count = Number(said)
  return Number.isSafeInteger(count) && count >= 0 && count <= COUNT_MAX ? count : null
}

function namesOf(players: unknown): string[] {
  const names: string[] = []
  for (const player of Array.isArray(players) ? players.slice(0, PLAYER_NAMES_MAX) : []) {
    const name = (player as { name?: unknown } | null)?.name
    if (typeof name !== 'string') continue
    const clean = cleanName(name.slice(0, PLAYER_NAME_MAX_CHARS * 2)).trim()
    if (clean !== '') names.push(clean)
  }
  return names
}
