// A game that nobody plays is stopped, and started again by who comes to play. Off by default.
import { isFailure } from '../../../contract/errors.ts'
import { SLEEP } from '../../../contract/fixed-limits.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { createMutex, type Mutex } from '../../../kit/waiting/mutex.ts'
import type { NewFact } from '../../journal/journal.ts'
import type { Presence } from '../players/index.ts'
import type { Accept } from '../power/actions.ts'
import type { KnownGame } from '../power/game-state.ts'
import type { Timers } from '../power/stop-ladder.ts'
import { type Door, doorPortOf, type Knock, type OnKnock, type OpenDoor } from './door.ts'

export interface SleepDeps {
  serverId: string
  game: KnownGame
  timers: Timers
  /** Of the game: one action at a time. */
  mutex: Mutex
  /** Where nothing tells, nobody is sent away. */
  occupancy(): Presence
  openDoor: OpenDoor
  /** Whether a process of it runs, or is about to. */
  isActive(): boolean
  isDetached(): boolean
  /** Fails with `server_busy` while the files are being replaced, or the server is being deleted. */
  shareFiles(): Disposable
  fallAsleep(): void
  start(accept: Accept): Promise<void>
  addFact(fact: NewFact): Promise<unknown>
  background(work: Promise<unknown>): void
}

export interface Sleep {
  /** Must be called whenever the state has changed, or whether a process runs: opens and closes the door, and watches. */
  follow(): void
  /** Resolves once the port is the game's. */
  leavePort(): Promise<void>
}

export function createSleep(deps: SleepDeps): Sleep {
  const { game, timers, mutex } = deps
  const turn = createMutex()
  let isDoorWanted = false
  let door: Door | undefined
  let watching: Disposable | undefined
  let reopening: Disposable | undefined
  let isWaking = false
  let refusesUntil = 0

  const isAsleep = () => game.record().power.state === 'sleeping' && !deps.isActive() && !deps.isDetached()
  const isWatched = () => {
    const { power, sleep, launch } = game.record()
    return power.state === 'running' && sleep !== null && launch !== null && doorPortOf(launch) !== undefined
  }

  // Falling asleep.

  function hasBeenEmptyForLong(): boolean {
    const { emptySince } = deps.occupancy()
    const { sleep, runningSince } = game.record()
    if (emptySince === null || sleep === null || runningSince === null || !isWatched()) return false
    return timers.now() - Math.max(emptySince, runningSince) >= sleep.afterMinutes * 60_000
  }

  function watch(): void {
    const mine = timers.after(SLEEP.lookEveryMs, () =>
      deps.background(
        look().finally(() => {
          if (watching !== mine) return
          watching = undefined
          follow()
        }),
      ),
    )
    watching = mine
  }

  async function look(): Promise<void> {
    // Asked again in the turn: somebody may have joined, or stopped it, meanwhile.
    if (hasBeenEmptyForLong()) await mutex(async () => hasBeenEmptyForLong() && deps.fallAsleep())
  }

  // Asleep.

  const onKnock: OnKnock = (knock) => {
    if (isWaking) return 'waking'
    if (timers.now() < refusesUntil || !isAsleep() || !isFree()) return 'refused'
    isWaking = true
    deps.background(mutex(() => wake(knock)).finally(() => (isWaking = false)))
    return 'waking'
  }

  /** A server that is being restored or deleted is not woken. */
  function isFree(): boolean {
    try {
      using _files = deps.shareFiles()
      return true
    } catch {
      return false
    }
  }

  async function wake({ address, player }: Knock): Promise<void> {
    if (!isAsleep()) return
    const properties = { address, ...(player === null ? {} : { player }) }
    try {
      await deps.start(() => deps.addFact({ serverId: deps.serverId, kind: 'game.woken', cause: null, properties }))
    } catch (error) {
      refusesUntil = timers.now() + SLEEP.retryMs
      game.tell(`could not be woken: ${error instanceof Error ? error.message : error}`)
      if (!isFailure(error)) throw error
    }
  }

  async function settleDoor(): Promise<void> {
    reopening?.[Symbol.dispose]()
    if (!isDoorWanted) {
      const open = door
      door = undefined
      await open?.close()
      return
    }
    const { launch, power } = game.record()
    if (door || !launch) return
    try {
      door = await deps.openDoor(launch, onKnock)
      if (power.step?.startsWith(CANNOT_HEAR)) game.tell(null)
    } catch (error) {
      game.tell(`${CANNOT_HEAR}: ${whyNot(error, doorPortOf(launch)?.port)}`)
      reopening = timers.after(SLEEP.retryMs, () => deps.background(turn(settleDoor)))
    }
  }

  function follow(): void {
    if (isWatched() && !deps.isDetached()) {
      if (!watching) watch()
    } else {
      watching?.[Symbol.dispose]()
      watching = undefined
    }
    if (isAsleep() === isDoorWanted) return
    isDoorWanted = isAsleep()
    deps.background(turn(settleDoor))
  }

  return {
    follow,
    async leavePort() {
      follow()
      await turn(async () => {})
    },
  }
}

const CANNOT_HEAR = 'joining does not wake it'

function whyNot(error: unknown, port: number | undefined): string {
  if (hasCode(error, 'EADDRINUSE')) return `port ${port} is in use by another program`
  if (hasCode(error, 'EACCES')) return `port ${port} is below 1024, which needs more rights`
  return error instanceof Error ? error.message : String(error)
}
