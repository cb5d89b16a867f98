// Tells who asks which games have changed since they asked last, without keeping anything for them.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

export interface StateChanges {
  tell(serverId: string): void
  forget(serverId: string): void
  /** As `AgentGames.changes`. */
  since(version: string, waitMs: number): Promise<{ version: string; serverIds: string[] }>
  /** Answers those who wait. */
  stop(): void
}

const LONGEST_WAIT_MS = 30_000

export function createStateChanges(known: () => string[]): StateChanges {
  /** Numbers of an earlier process mean nothing. */
  const epoch = randomUUID()
  const changedAt = new Map<string, number>()
  let last = 0
  const stopping = new AbortController()
  let changed = Promise.withResolvers<void>()

  const versionNow = () => `${epoch}.${last}`
  function later(than: number): string[] {
    return [...changedAt].filter(([, at]) => at > than).map(([serverId]) => serverId)
  }

  return {
    tell(serverId) {
      changedAt.set(serverId, ++last)
      changed.resolve()
      changed = Promise.withResolvers()
    },
    forget: (serverId) => void changedAt.delete(serverId),
    async since(version, waitMs) {
      const [ofEpoch, number] = version.split('.')
      if (ofEpoch !== epoch) return { version: versionNow(), serverIds: known() }
      const seen = Number(number)
      if (seen >= last) {
        const wait = delay(Math.min(waitMs, LONGEST_WAIT_MS), undefined, { signal: stopping.signal, ref: false })
        await Promise.race([changed.promise, wait.catch(() => {})])
      }
      return { version: versionNow(), serverIds: later(seen) }
    },
    stop: () => stopping.abort(),
  }
}
