// Containers of rehearsals that have to go. An engine that is away keeps them; nothing else waits for it, and whoever comes after a
// crash or a boot knows them by what is written here.
import { setTimeout as delay } from 'node:timers/promises'
import { readRecord, writeRecord } from '../../kit/files/durable-record.ts'
import { containerName } from '../games/container/container-options.ts'
import type { Engine } from '../games/container/engine.ts'
import { SYSTEM_TIMERS, type Timers } from '../games/power/stop-ladder.ts'

const AGAIN_AFTER_MS = 60_000
const WAIT_MS = 5000

export interface LeftContainers {
  /** Durable when it returns. */
  add(runId: string): void
  /** Never fails. An engine that does not answer soon is not waited for: it is asked again until it has. */
  remove(): Promise<void>
}

export function createLeftContainers(deps: {
  file: string
  engine: Pick<Engine, 'remove'>
  timers?: Timers
  onUnexpected(error: unknown): void
}): LeftContainers {
  const { file, engine, timers = SYSTEM_TIMERS } = deps
  let removing: Promise<void> | undefined
  let isSaid = false
  const read = () => readRecord<{ runIds: string[] }>(file)?.runIds ?? []
  const write = (runIds: string[]) => writeRecord(file, { runIds })

  /** One that cannot be removed keeps none of the others. */
  async function removeEach(): Promise<void> {
    const kept = new Map<string, unknown>()
    for (;;) {
      const runId = read().find((each) => !kept.has(each))
      if (runId === undefined) break
      try {
        await engine.remove(containerName(runId))
        write(read().filter((each) => each !== runId))
      } catch (error) {
        kept.set(runId, error)
      }
    }
    const [fault] = kept.values()
    if (fault !== undefined) throw fault
  }

  async function removeOrTryAgain(): Promise<void> {
    try {
      await removeEach()
      isSaid = false
    } catch (error) {
      if (!isSaid) deps.onUnexpected(error)
      isSaid = true
      timers.after(AGAIN_AFTER_MS, () => void remove())
    } finally {
      removing = undefined
    }
  }

  async function remove(): Promise<void> {
    removing ??= removeOrTryAgain()
    const waited = new AbortController()
    const late = delay(WAIT_MS, undefined, { signal: waited.signal }).catch(() => {})
    await Promise.race([removing, late])
    waited.abort()
  }

  return {
    add: (runId) => write([...new Set([...read(), runId])]),
    remove,
  }
}
