// The least service in Node, as a tool of the benchmark: what is left to gain where a backup is asked for over HTTP and recorded.
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { discard, record, type Tool, UNCHANGED_RUNS, type Warmth } from '../backup-peers.ts'
import type { Made } from './node/service.ts'

const PROGRAM = fileURLToPath(new URL('./node/service.ts', import.meta.url))
/** As often as ours has done it before. */
const WARM_UPS = 12

export const serviceFloorName = (warmth: Warmth) => `least service in Node, ${warmth}`

export function createServiceFloor(warmth: Warmth): Tool {
  return {
    name: serviceFloorName(warmth),
    async round({ base, tree }, times) {
      const folder = join(base, `service-${warmth}`)
      mkdirSync(folder)
      let running = await startLeastService(tree, folder)
      try {
        if (warmth === 'warm') for (let count = 0; count < WARM_UPS; count++) await running.backUp()
        for (let count = 0; count < UNCHANGED_RUNS; count++) {
          if (warmth === 'cold') {
            await running.stop()
            running = await startLeastService(tree, folder)
          }
          const begun = performance.now()
          await running.backUp()
          record(times, 'unchanged', (performance.now() - begun) / 1000)
        }
      } finally {
        await running.stop()
        discard(folder)
      }
    },
  }
}

interface LeastService {
  backUp(token?: string): Promise<Made>
  stop(): Promise<void>
}

export async function startLeastService(tree: string, folder: string): Promise<LeastService> {
  const own = randomBytes(32).toString('hex')
  const child: ChildProcess = fork(PROGRAM, [tree, folder, own], { env: { ...process.env, NODE_TEST_CONTEXT: '' } })
  const ended = once(child, 'exit')
  const port = await Promise.race([once(child, 'message').then(([first]) => first as number), ended.then(() => 0)])
  if (port === 0) throw new Error('the least service in Node has ended')
  return {
    async backUp(token = own) {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers })
      if (!response.ok) throw new Error(`the least service in Node answers ${response.status}`)
      return (await response.json()) as Made
    },
    async stop() {
      child.disconnect()
      await ended
    },
  }
}
