// The process of noise.ts: as many requests as the limit of a minute allows, begun evenly, with no more than `atOnce` under
// way.
import { readdirSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import type { NoiseTask } from './noise.ts'
import { NOISES, type Noise } from './noises.ts'
import { callAs, type Tenant } from './tenants.ts'

const { name, requestsPerMinute, ...tenant } = JSON.parse(process.argv[2] ?? '') as NoiseTask
const noisy: Tenant = { ...tenant, call: callAs(tenant.url, tenant.token) }
const { prepare, request, atOnce = 100 } = NOISES[name] as Noise

await prepare?.(noisy)
// Priority belongs to a thread: those that collect garbage count too.
for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), constants.priority.PRIORITY_LOW)

const everyMs = 60_000 / requestsPerMinute
const underWay = new Set<Promise<void>>()
const abort = new AbortController()
let [sent, refused] = [0, 0]
let timer: NodeJS.Timeout | undefined

async function send(index: number): Promise<void> {
  const status = await request(noisy, index, abort.signal).catch(() => 0)
  if (status >= 400) refused++
}

function begin(): void {
  const begun = performance.now()
  timer = setInterval(() => {
    while (sent < (performance.now() - begun) / everyMs && underWay.size < atOnce) {
      const one = send(sent++).finally(() => underWay.delete(one))
      underWay.add(one)
    }
  }, everyMs)
}

async function stop(): Promise<void> {
  clearInterval(timer)
  abort.abort()
  await Promise.allSettled(underWay)
  process.send?.({ sent, refused })
  process.disconnect?.()
}

process.on('message', (message) => void (message === 'begin' ? begin() : stop()))
process.send?.('prepared')
