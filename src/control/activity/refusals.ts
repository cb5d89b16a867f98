// Refusals are worth an entry, but a stranger who is refused a hundred times a second must not fill the activity with
// them: the first is recorded at once, those within the next minute are counted and become one entry.
import type { Scope } from '../../contract/scopes.ts'
import type { Actor } from '../http/actor.ts'

const WINDOW_MS = 60_000
const REMEMBERED_MAX = 10_000

export interface Refusal {
  actor: Actor
  serverId: string
  scope: Scope
}

export interface Refusals {
  add(refusal: Refusal): Promise<void>
  /** Records what was counted in windows that are over; with `all`, in every window. */
  flush(all?: boolean): Promise<void>
}

interface Window extends Refusal {
  endsAt: number
  /** After the one that was recorded. */
  count: number
}

/** `record` writes an entry; `count` is 1 for one that is recorded at once. */
export function createRefusals(record: (refusal: Refusal, count: number) => Promise<void>): Refusals {
  const windows = new Map<string, Window>()

  /** Takes windows out before anything is awaited, so that each is recorded by one caller. */
  function take(isOver: (window: Window) => boolean): Window[] {
    const over = [...windows].filter(([, window]) => isOver(window))
    for (const [key] of over) windows.delete(key)
    return over.map(([, window]) => window)
  }

  async function recordCounted(over: readonly Window[]): Promise<void> {
    for (const window of over) if (window.count > 0) await record(window, window.count)
  }

  return {
    async add(refusal) {
      const { actor, serverId, scope } = refusal
      const key = `${actor.id} ${serverId} ${scope}`
      const known = windows.get(key)
      if (known && known.endsAt > performance.now()) {
        known.count++
        // Who is refused now says more of where it comes from than who was refused first.
        known.actor = actor
        return
      }
      const over = windows.size >= REMEMBERED_MAX ? take(() => true) : known ? [known] : []
      // Before anything is awaited: whoever is refused meanwhile is counted in it.
      windows.set(key, { ...refusal, endsAt: performance.now() + WINDOW_MS, count: 0 })
      await recordCounted(over)
      await record(refusal, 1)
    },
    async flush(all = false) {
      const now = performance.now()
      await recordCounted(take((window) => all || window.endsAt <= now))
    },
  }
}
