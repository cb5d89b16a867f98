// What the quiet tenant asks for, over and over: a list, a file, a small write, a page of activity, its backups.
import { parentPort, workerData } from 'node:worker_threads'
import type { QuietReport } from './quiet.ts'
import { callAs } from './tenants.ts'

const { url, token, serverId } = workerData as { url: string; token: string; serverId: string }
const call = callAs(url, token)
const port = parentPort as NonNullable<typeof parentPort>
const WARM_UP_ROUNDS = 40
/** Below the limit of requests, however quick the answers are. */
const PAUSE_MS = 12

const content = (path: string) => `/files/${serverId}/content?path=${encodeURIComponent(path)}`
const REQUESTS = [
  () => call('GET', `/files/${serverId}?path=/`),
  () => call('PUT', content('/server.properties'), { body: 'motd=quiet\n' }),
  () => call('GET', content('/server.properties')),
  () => call('GET', `/servers/${serverId}/activity`),
  () => call('GET', `/backups/${serverId}`),
]

async function askFor(ms: number): Promise<QuietReport> {
  const times: number[] = []
  let failed = 0
  for (const end = performance.now() + ms; performance.now() < end; )
    for (const request of REQUESTS) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      const begun = performance.now()
      const status = await request().then(
        (reply) => reply.status,
        () => 0,
      )
      times.push(performance.now() - begun)
      if (status !== 200 && status !== 201) failed++
    }
  const sorted = times.sort((a, b) => a - b)
  const quantile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
  const [medianMs, p99Ms, slowestMs] = [quantile(0.5), quantile(0.99), sorted.at(-1) ?? 0]
  return { count: times.length, failed, medianMs, p99Ms, slowestMs }
}

await call('PUT', content('/server.properties'), { body: 'motd=quiet\n' })
for (let round = 0; round < WARM_UP_ROUNDS; round++) for (const request of REQUESTS) await request()
port.on('message', async (ms: number) => port.postMessage(await askFor(ms)))
port.postMessage('warm')
