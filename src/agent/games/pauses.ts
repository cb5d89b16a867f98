// Games that are stopped for work on their files, and started again afterwards. That a game is to be started again is on
// disk before it is stopped: whatever dies in between, whoever goes on with the work finds it there.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ChangeOrigin } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import type { PowerAction } from '../../contract/games/power.ts'
import { readRecord, removeRecord, writeRecord } from '../../kit/files/durable-record.ts'
import type { Watchers } from '../../kit/waiting/watchers.ts'
import type { Game } from './power/game-deps.ts'

/** Somebody is told of every change; this is for whatever is missed nevertheless. */
const LOOK_EVERY_MS = 10_000

interface PauseNote {
  /** The job that it is paused for. */
  jobId: string
}

export interface Pauses {
  /** Stops it by its ladder, and resolves once it has ended. False where it was not meant to run. */
  pause(serverId: string, request: { jobId: string; origin: ChangeOrigin }, signal: AbortSignal): Promise<boolean>
  /** Starts it again if it was paused for this job. */
  resume(serverId: string, jobId: string): Promise<boolean>
  /** The job that it is paused for. */
  jobOf(serverId: string): string | null
  /** Refuses a start, and forgets the pause where somebody wants it to stay stopped. True where it did. */
  accept(serverId: string, action: PowerAction): boolean
  forget(serverId: string): void
}

/** Of a stop, nothing else is looked at. */
const STOP = {
  action: 'stop',
  launch: null,
  limits: { memoryBytes: null, cpuPercent: null, processes: null },
  autoRestart: true,
  sleep: null,
} as const

export function createPauses(deps: {
  game(serverId: string): Game
  /** Fails with `server_busy` where the files are half of one tree and half of another. */
  requireWhole(serverId: string): void
  noteFile(serverId: string): string
  /** Told of each change of a game. */
  changes: Watchers
}): Pauses {
  const jobOf = (serverId: string) => readRecord<PauseNote>(deps.noteFile(serverId))?.jobId ?? null
  const forget = (serverId: string) => {
    if (jobOf(serverId) !== null) removeRecord(deps.noteFile(serverId))
  }

  async function whenEnded(serverId: string, signal: AbortSignal): Promise<void> {
    using changed = deps.changes.watch(serverId)
    while (deps.game(serverId).isActive()) {
      await changed.wait(LOOK_EVERY_MS, signal)
      signal.throwIfAborted()
    }
  }

  return {
    jobOf,
    forget,

    async pause(serverId, { jobId, origin }, signal) {
      signal.throwIfAborted()
      const game = deps.game(serverId)
      const isPaused = jobOf(serverId) === jobId
      const wasWanted = isPaused || game.isWanted()
      if (wasWanted && !isPaused) {
        const file = deps.noteFile(serverId)
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
        writeRecord(file, { jobId } satisfies PauseNote)
      }
      if (wasWanted) await game.power({ ...STOP, serverId, origin })
      await whenEnded(serverId, signal)
      return wasWanted
    },

    async resume(serverId, jobId) {
      if (jobOf(serverId) !== jobId) return false
      deps.requireWhole(serverId)
      await deps.game(serverId).again()
      forget(serverId)
      return true
    },

    accept(serverId, action) {
      if (jobOf(serverId) === null) return false
      if (action === 'start' || action === 'restart')
        throw fail('server_busy', 'The game is stopped for a restore, and is started again after it.')
      forget(serverId)
      return true
    },
  }
}
