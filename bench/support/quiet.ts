// The quiet tenant: one request after the other, on a thread of its own, so that making noise does not look like a slow
// service.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Tenant } from './tenants.ts'

export interface QuietReport {
  count: number
  failed: number
  medianMs: number
  p99Ms: number
  slowestMs: number
}

export interface Quiet {
  /** What its requests took within the next `ms`. */
  during(ms: number): Promise<QuietReport>
  stop(): Promise<unknown>
}

/** Resolves when everything that it asks for has been asked for some times. */
export async function startQuiet({ url, token, serverId }: Tenant): Promise<Quiet> {
  const worker = new Worker(new URL('./quiet-work.ts', import.meta.url), { workerData: { url, token, serverId } })
  await once(worker, 'message')
  return {
    async during(ms) {
      worker.postMessage(ms)
      const [report] = (await once(worker, 'message')) as [QuietReport]
      return report
    },
    stop: () => worker.terminate(),
  }
}
