// The noisy tenant: a process of its own, at the lowest priority, so that what it costs to make noise is not taken for what
// the service does with it. In earnest it is made on another machine.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Tenant } from './tenants.ts'

export interface NoiseReport {
  sent: number
  refused: number
}

export type NoiseTask = { name: string; requestsPerMinute: number } & Omit<Tenant, 'call'>

/** Resolves when everything is prepared, and nothing has been sent yet. */
export async function prepareNoise(name: string, requestsPerMinute: number, tenant: Tenant) {
  const { url, token, serverId, folder } = tenant
  const task: NoiseTask = { name, requestsPerMinute, url, token, serverId, folder }
  const child = fork(fileURLToPath(new URL('./noise-work.ts', import.meta.url)), [JSON.stringify(task)])
  const next = async () => {
    const [message] = await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) => Promise.reject(new Error(`the noise ended with ${code}`))),
    ])
    return message
  }
  await next()
  return {
    begin: () => void child.send('begin'),
    async stop(): Promise<NoiseReport> {
      const report = next()
      child.send('stop')
      return (await report) as NoiseReport
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}
