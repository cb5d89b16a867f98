// 200 games that do nothing: what the service itself takes for them, and what their supervisors take in sum.
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { cpuSeconds, holds, table } from '../../measure.ts'
import { type GameService, startGameService } from './game-service.ts'

const GAMES = Number(process.env.GAMEKEEPER_BENCH_IDLE_GAMES ?? 200)
const SECONDS = Number(process.env.GAMEKEEPER_BENCH_SECONDS ?? 60)
const STARTED_AT_ONCE = 4
const MIB = 1024 ** 2
const IDLE = new URL('idle-game', import.meta.url)

/** In memory now, and of that, what is its own and nobody else's. */
function memoryOf(pid: number): { residentBytes: number; privateBytes: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0)
  return { residentBytes: 1024 * kib('Rss'), privateBytes: 1024 * (kib('Private_Dirty') + kib('Private_Clean')) }
}

/** Percent of a core over the given time. */
async function cpuPercent(pids: readonly number[], seconds: number): Promise<number[]> {
  const before = pids.map(cpuSeconds)
  const begun = performance.now()
  await delay(seconds * 1000)
  const elapsed = (performance.now() - begun) / 1000
  return pids.map((pid, index) => (100 * (cpuSeconds(pid) - (before[index] ?? 0))) / elapsed)
}

async function startAll(running: GameService, serverIds: readonly string[]): Promise<void> {
  const waiting = [...serverIds]
  const starter = async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await running.start(next)
  }
  await Promise.all(Array.from({ length: STARTED_AT_ONCE }, starter))
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

export async function idleGames(): Promise<boolean> {
  await using running = await startGameService()
  const { pid } = running.service
  const serverIds: string[] = []
  for (let n = 1; n <= GAMES; n++) serverIds.push(await running.create(`Idle ${n}`, IDLE))
  // The first start loads what every later one uses.
  await running.start(serverIds[0] as string)
  const [alone = 0] = await cpuPercent([pid], SECONDS / 2)
  const before = memoryOf(pid)
  await startAll(running, serverIds.slice(1))
  const supervisors = serverIds.flatMap(running.supervisorsOf)
  const [busy = 0, ...supervisorsBusy] = await cpuPercent([pid, ...supervisors], SECONDS)
  const after = memoryOf(pid)
  const beside = supervisors.map(memoryOf)
  const grown = (after.residentBytes - before.residentBytes) / MIB
  table([
    [`${GAMES} idle games`, 'resident, MiB', 'its own, MiB', '% of a core'],
    ['the service with one game', before.residentBytes / MIB, before.privateBytes / MIB, alone],
    ['the service with all of them', after.residentBytes / MIB, after.privateBytes / MIB, busy],
    [
      `${supervisors.length} supervisors in sum`,
      sum(beside.map(({ residentBytes }) => residentBytes)) / MIB,
      sum(beside.map(({ privateBytes }) => privateBytes)) / MIB,
      sum(supervisorsBusy),
    ],
  ])
  return [
    holds('memory that the service takes for them, MiB', grown, '<=', 150),
    holds('% of a core that the service takes', busy, '<=', 5),
  ].every(Boolean)
}
