// The API keeps to the disk quota of a server; a game writes past it. So it is looked at, and a game whose files are beyond the
// quota is stopped while it can still save: a disk that one game has filled is full for all.
import type { DiskUsage } from '../../../contract/agent/agent-files.ts'
import { fail } from '../../../contract/errors.ts'
import { DISK_LOOKS } from '../../../contract/fixed-limits.ts'
import type { KnownGame } from './game-state.ts'
import type { Timers } from './stop-ladder.ts'

export interface DiskOfServer {
  hasByteLimit(): boolean
  read(): Promise<DiskUsage>
}

export interface DiskWatch {
  /** Must be called whenever the state has changed. */
  follow(): void
  /** Fails with `quota_exceeded` where the game would be stopped at once. */
  requireRoom(): Promise<void>
}

export interface DiskWatchDeps {
  game: KnownGame
  timers: Timers
  disk: DiskOfServer
  isDetached(): boolean
  /** The game is to end, and why. */
  stop(excess: Excess): Promise<void>
  background(work: Promise<unknown>): void
}

export interface Excess {
  filesBytes: number
  quotaBytes: number | null
  files: number
  maxEntries: number | null
}

export function createDiskWatch({ game, timers, disk, isDetached, stop, background }: DiskWatchDeps): DiskWatch {
  let looking: Disposable | undefined
  const isWatched = () => game.record().power.state === 'running' && !isDetached()

  function follow(): void {
    if (!isWatched()) {
      looking?.[Symbol.dispose]()
      looking = undefined
      return
    }
    if (looking) return
    const everyMs = disk.hasByteLimit() ? DISK_LOOKS.limitedMs : DISK_LOOKS.unlimitedMs
    const mine = timers.after(everyMs, () => background(look(mine)))
    looking = mine
  }

  async function look(mine: Disposable): Promise<void> {
    try {
      const excess = excessOf(await disk.read())
      if (excess && isWatched()) await stop(excess)
    } finally {
      if (looking === mine) looking = undefined
      follow()
    }
  }

  return {
    follow,
    async requireRoom() {
      // Without a limit in bytes nobody waits for the files to be counted.
      const excess = disk.hasByteLimit() ? excessOf(await disk.read()) : undefined
      if (excess)
        throw fail(
          'quota_exceeded',
          'The files of this server are beyond its disk quota, so its game would be stopped.',
        )
    },
  }
}

/** What is in the trash goes when room is needed, so it does not count here. */
function excessOf(usage: DiskUsage): Excess | undefined {
  const { quotaBytes, maxEntries } = usage
  const filesBytes = usage.usedBytes - usage.trashBytes
  const files = usage.usedEntries - usage.trashEntries
  const isOver = (used: number, limit: number | null) => limit !== null && used > limit
  return isOver(filesBytes, quotaBytes) || isOver(files, maxEntries)
    ? { filesBytes, quotaBytes, files, maxEntries }
    : undefined
}
