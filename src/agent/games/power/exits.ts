// Why a game ended, and when one that has crashed is started again. Decided from what is known, and nothing else.
import { CRASH_RESTARTS } from '../../../contract/fixed-limits.ts'
import type { ExitReason } from '../../../contract/games/power.ts'
import type { RunEnd } from '../runtime.ts'

/** What it was told to do, if anything. */
export type Asked = 'stop' | 'restart' | 'sleep' | 'kill' | null

export function reasonOf(end: RunEnd, asked: Asked): ExitReason {
  if (asked === 'kill') return 'killed'
  // At the end of the ladder there is SIGKILL: what it had not saved by then is lost, and that is said.
  const isLoss = end.signal === 'SIGKILL' && !end.isOutOfMemory && end.hasBegun !== false
  if (asked !== null) return isLoss ? 'killed' : 'requested'
  if (end.isOutOfMemory) return 'out_of_memory'
  if (end.signal === 'SIGKILL') return 'killed'
  if (end.saidStop || (end.code === 0 && end.wasReady)) return 'in_game'
  return 'crashed'
}

/** Whether somebody has to hear of it, and it is to be started again. */
export const isCrash = (reason: ExitReason, asked: Asked) =>
  asked === null && reason !== 'requested' && reason !== 'in_game'

/** What a game is in that has done what it was asked; who waits for a restart must not take its stop for the end of it. */
export function stateAfter(asked: Asked) {
  if (asked === 'restart') return 'starting'
  return asked === 'sleep' ? 'sleeping' : 'stopped'
}

/** How long to wait before the start after the given number of them; undefined once it is given up. */
export function restartDelayMs(restarts: number): number | undefined {
  const { count, firstMs, longestMs } = CRASH_RESTARTS
  return restarts >= count ? undefined : Math.min(longestMs, firstMs * 2 ** restarts)
}

/** After it has run well for long enough, a crash counts as the first one again. */
export const restartsAfter = (restarts: number, ranMs: number) => (ranMs >= CRASH_RESTARTS.healthyMs ? 0 : restarts)
