// GET /servers/{id} with its token check and its database read, over a bare node:http server that sends the same bytes.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { spawnService } from '../test/support/process.ts'
import { cpuSeconds, holds, median, requestsPerSecond, table } from './measure.ts'

// Many short rounds, each of both sides one right after the other: the speed of the machine itself changes in seconds.
const ROUNDS = 24
const SECONDS = 1
const WARM_UP_SECONDS = 2
const BAR = 0.4

export async function run(): Promise<boolean> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-bench-'))
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  // The limit is on, as it is for everybody; it is only set higher than can be reached.
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '10000000' }
  const service = await spawnService(env)
  const headers = { authorization: `Bearer ${token}` }
  const created = await fetch(`${service.url}/v1/game/servers`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'Castle',
      game: 'minecraft-java',
      port: 25565,
      limits: { backups: 30 },
      labels: { owner: 'anna' },
    }),
  })
  const { id } = (await created.json()) as { id: string }
  const url = `${service.url}/v1/game/servers/${id}`
  const bare = await startBare(await fetch(url, { headers }))
  const sides = [
    { name: 'GET /servers/{id}', url, pid: service.pid, rates: [] as number[], cpu: [] as number[] },
    { name: 'bare node:http', url: bare.url, pid: bare.pid, rates: [] as number[], cpu: [] as number[] },
  ] as const
  try {
    for (const side of sides) await requestsPerSecond(side.url, headers, WARM_UP_SECONDS)
    for (let i = 0; i < ROUNDS; i++) {
      // Now one is first and now the other, so that neither is always measured in a better moment.
      for (const side of i % 2 === 0 ? sides : sides.toReversed()) {
        const before = cpuSeconds(side.pid)
        const rate = await requestsPerSecond(side.url, headers, SECONDS)
        side.rates.push(rate)
        side.cpu.push(((cpuSeconds(side.pid) - before) / (rate * SECONDS)) * 1e6)
      }
    }
  } finally {
    bare.stop()
    await service.kill('SIGTERM')
    await rm(dataDir, { recursive: true, force: true })
  }
  const [ours, theirs] = sides
  const ratios = ours.rates.map((value, i) => value / (theirs.rates[i] ?? 1))
  const cpuRatios = theirs.cpu.map((value, i) => value / (ours.cpu[i] ?? 1))
  table([
    ['', 'median', 'lowest', 'highest'],
    ...sides.map(({ name, rates }) => [`${name}, requests a second`, ...spread(rates)]),
    [`ratio in each of ${ROUNDS} rounds`, ...spread(ratios)],
    ...sides.map(({ name, cpu }) => [`${name}, processor µs a request`, ...spread(cpu)]),
    ['ratio of processor time', ...spread(cpuRatios)],
  ])
  return holds('the median ratio of requests a second', median(ratios), '>=', BAR)
}

const spread = (values: readonly number[]) => [median(values), Math.min(...values), Math.max(...values)]

async function startBare(model: Response): Promise<{ url: string; pid: number; stop(): void }> {
  const body = await model.text()
  const skip = ['date', 'connection', 'keep-alive', 'transfer-encoding']
  const headers = Object.fromEntries([...model.headers].filter(([name]) => !skip.includes(name)))
  const file = fileURLToPath(new URL('./bare-http.ts', import.meta.url))
  const child = spawn(process.execPath, [file, JSON.stringify({ headers, body })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: String(line).trim(), pid: child.pid ?? 0, stop: () => void child.kill('SIGKILL') }
}
