// A game that writes 50,000 lines a second, first alone, then with 100 who follow its console: its own rate, the memory of the
// service, and whether one who breaks off and resumes again and again has every line.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../../../test/support/until.ts'
import { holds, peakBytes, restartPeak, table } from '../../measure.ts'
import type { ReadersOrder, ReadersReport } from './console-readers.ts'
import { type GameService, startGameService } from './game-service.ts'

const RATE = 50_000
const SECONDS = Number(process.env.GAMEKEEPER_BENCH_SECONDS ?? 12)
const READERS = 100
/** A token may have 50 streams. */
const READERS_PER_TOKEN = 40
const SETTLING_MS = 2000
const LOWEST_PRIORITY = 19
const MIB = 1024 ** 2
const FLOODING = new URL('flooding-game', import.meta.url)

/** With patterns that are looked for in every line, as those of Minecraft are. */
const TEMPLATE = {
  format: 1,
  id: 'flood',
  name: 'Flood',
  runtimes: ['process'],
  start: { args: ['./start'] },
  stop: [{ command: 'stop', timeoutSeconds: 10 }],
  stopsByItself: ['Stopping the server'],
  joins: [']: {player} joined the game'],
  leaves: [']: {player} left the game'],
}

interface Flood {
  linesPerSecond: number
  /** The number of the last line. */
  lastLine: number
  peakMib: number
}

/** The game says itself how long it took. */
async function flood({ client, service }: GameService, serverId: string): Promise<Flood> {
  const [newest] = (await client.console.read(serverId, { limit: 1 })).data
  restartPeak(service.pid)
  await client.console.send(serverId, `${RATE} ${SECONDS}`)
  await delay(SECONDS * 1000)
  const ended = await until(async () => {
    const { data } = await client.console.read(serverId, { limit: 1 })
    return data[0] && data[0].line !== newest?.line && data[0].text.startsWith('flooded ') ? data[0] : undefined
  })
  const [, count, seconds] = /^flooded (\d+) in ([\d.]+)$/.exec(ended.text) ?? []
  return {
    linesPerSecond: Number(count) / Number(seconds),
    lastLine: ended.line,
    peakMib: peakBytes(service.pid) / MIB,
  }
}

/** In a process of its own, at the lowest priority: readers elsewhere take no time from the game. */
async function startReaders(running: GameService, serverId: string) {
  const tokens: string[] = []
  for (let count = 0; count < READERS + 1; count += READERS_PER_TOKEN)
    tokens.push((await running.client.tokens.create({ name: 'reader', scopes: ['console:read'], servers: '*' })).token)
  const child = fork(new URL('console-readers.ts', import.meta.url))
  if (child.pid !== undefined) setPriority(child.pid, LOWEST_PRIORITY)
  const order: ReadersOrder = { url: running.service.url, serverId, tokens, readers: READERS }
  child.send(order)
  await once(child, 'message')
  return {
    /** Resolves once the one who resumes has come to the line, or there is nothing more. */
    async report(lastLine: number): Promise<ReadersReport> {
      child.send({ lastLine })
      const [report] = (await once(child, 'message')) as [ReadersReport]
      return report
    },
    [Symbol.dispose]: () => void child.kill(),
  }
}

export async function floodedConsole(): Promise<boolean> {
  await using running = await startGameService()
  await running.client.templates.create(JSON.stringify(TEMPLATE))
  const serverId = await running.create('Flood', FLOODING, TEMPLATE.id)
  await running.start(serverId)
  const warm = await flood(running, serverId)
  await delay(SETTLING_MS)
  const alone = await flood(running, serverId)
  using readers = await startReaders(running, serverId)
  const followed = await flood(running, serverId)
  const report = await readers.report(followed.lastLine)
  table([
    [`${RATE} lines a second for ${SECONDS} s`, 'its own rate', 'peak of the service, MiB'],
    ['warming up', warm.linesPerSecond, warm.peakMib],
    ['nobody follows', alone.linesPerSecond, alone.peakMib],
    [`${READERS} follow`, followed.linesPerSecond, followed.peakMib],
  ])
  console.log(
    `readers got ${report.lines} lines by the end of the flood, ${report.dropped} streams were dropped; the one who ` +
      `resumed ${report.resumed} times has ${report.checked} lines and misses ${report.missed}`,
  )
  return [
    holds('rate with readers to rate with none', followed.linesPerSecond / alone.linesPerSecond, '>=', 0.9),
    holds('memory that readers add at most, MiB', followed.peakMib - alone.peakMib, '<=', 256),
    holds('lines that the one who resumes misses', report.missed, '<=', 0),
  ].every(Boolean)
}
