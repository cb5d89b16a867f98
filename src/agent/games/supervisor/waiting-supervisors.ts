// Supervisors that wait for their order. One takes longer to load than all else of a start together, so it loads while a start
// is being checked; and where a service keeps one ready, it has loaded before anybody asks (`npm run bench -- games`).
import { spawnSupervisor, type WaitingSupervisor } from './supervisor-client.ts'

/** A start that was checked, and then given up, has no use for its supervisor. */
const ORDERED_WITHIN_MS = 30_000

export interface WaitingSupervisors {
  /** For a start that is about to come. */
  reserve(serverId: string, gameFolder: string): void
  /** The one that was reserved, or else any. */
  take(serverId: string, gameFolder: string): WaitingSupervisor
  /** For the next start, whosever that is. Never fails: the game whose start it comes after runs already. */
  loadSpare(gameFolder: string): void
}

export function createWaitingSupervisors({ keepsSpare }: { keepsSpare: boolean }): WaitingSupervisors {
  const reserved = new Map<string, WaitingSupervisor>()
  let spare: WaitingSupervisor | undefined

  /** Something may have ended it while it waited. */
  function takeSpare(): WaitingSupervisor | undefined {
    const found = spare
    spare = undefined
    return found?.isAlive() ? found : undefined
  }

  function takeReserved(serverId: string): WaitingSupervisor | undefined {
    const found = reserved.get(serverId)
    reserved.delete(serverId)
    return found
  }

  function giveUp(serverId: string): void {
    const found = takeReserved(serverId)
    if (keepsSpare && !spare) spare = found
    else found?.[Symbol.dispose]()
  }

  return {
    reserve(serverId, gameFolder) {
      giveUp(serverId)
      const made = takeSpare() ?? spawnSupervisor(gameFolder)
      reserved.set(serverId, made)
      setTimeout(() => reserved.get(serverId) === made && giveUp(serverId), ORDERED_WITHIN_MS).unref()
    },
    take(serverId, gameFolder) {
      const found = takeReserved(serverId)
      return found?.isAlive() ? found : (takeSpare() ?? spawnSupervisor(gameFolder))
    },
    loadSpare(gameFolder) {
      if (!keepsSpare) return
      try {
        spare = takeSpare() ?? spawnSupervisor(gameFolder)
      } catch {
        // The next start makes its own, or says why it cannot.
      }
    },
  }
}
