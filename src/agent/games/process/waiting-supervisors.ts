// Supervisors that wait for their order. One takes longer to load than all else of a start together, so it loads while a start
// is being checked; and where a service keeps one ready, it has loaded before anybody asks (`npm run bench -- games`).
// It prepares meanwhile: the kernel takes its time to move it into groups, and from it a program is started more quickly than
// from the service, which is much larger.
import type { Launch } from '../../../contract/games/launch.ts'
import type { OwnershipQuestion } from '../supervisor/protocol.ts'
import { spawnSupervisor, type WaitingSupervisor } from '../supervisor/supervisor-client.ts'
import { type GameGroups, removeGroups } from './cgroups.ts'

/** A start that was checked, and then given up, has no use for its supervisor. */
const ORDERED_WITHIN_MS = 30_000

/** In its groups, which it removes itself if it is let go of without an order. */
export interface ReadySupervisor {
  supervisor: WaitingSupervisor
  groups: GameGroups
  /** Whether all files of the server are known to be its game's. */
  isOwner(): Promise<boolean>
}

/** What it is made ready with. */
export interface ReadyWith {
  gameFolder: string
  makeGroups(): GameGroups
  ownership: OwnershipQuestion | null
}

export interface WaitingSupervisors {
  /** For a start that is about to come. */
  reserve(launch: Launch, ready: ReadyWith): void
  /** The start does not come. */
  giveUp(launch: Launch): void
  /** The one that was reserved, or else any. */
  take(launch: Launch, ready: ReadyWith): ReadySupervisor
  /** For the next start, whosever that is. Never fails: the game whose start it comes after runs already. */
  loadSpare(gameFolder: string): void
}

export function createWaitingSupervisors({ keepsSpare }: { keepsSpare: boolean }): WaitingSupervisors {
  const reserved = new Map<Launch, ReadySupervisor>()
  let spare: WaitingSupervisor | undefined

  /** Something may have ended it while it waited. */
  function takeSpare(): WaitingSupervisor | undefined {
    const found = spare
    spare = undefined
    if (found?.mayBeAlive()) return found
    found?.[Symbol.dispose]()
    return undefined
  }

  function takeReserved(launch: Launch): ReadySupervisor | undefined {
    const found = reserved.get(launch)
    reserved.delete(launch)
    if (!found || found.supervisor.mayBeAlive()) return found
    found.supervisor[Symbol.dispose]()
    void removeGroups(found.groups.folders)
    return undefined
  }

  function makeReady({ gameFolder, makeGroups, ownership }: ReadyWith): ReadySupervisor {
    using unready = new DisposableStack()
    const supervisor = unready.use(takeSpare() ?? spawnSupervisor(gameFolder))
    const groups = makeGroups()
    supervisor.prepare({ groups: groups.folders, ownership })
    unready.move()
    return { supervisor, groups, isOwner: async () => ownership !== null && supervisor.isOwner() }
  }

  const giveUp = (launch: Launch) => takeReserved(launch)?.supervisor[Symbol.dispose]()

  return {
    reserve(launch, ready) {
      giveUp(launch)
      const made = makeReady(ready)
      reserved.set(launch, made)
      setTimeout(() => reserved.get(launch) === made && giveUp(launch), ORDERED_WITHIN_MS).unref()
    },
    giveUp,
    take: (launch, ready) => takeReserved(launch) ?? makeReady(ready),
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
