// What each action means in each state. False: it is so already.
import { fail } from '../../../contract/errors.ts'
import type { PowerAction, PowerState } from '../../../contract/games/power.ts'

/** Records that the action was asked for, once nothing speaks against it and before anything is done. */
export type Accept = () => Promise<unknown>
export type StopRequest = 'stop' | 'restart'
export type Handlers = Record<Exclude<PowerAction, 'kill'>, (accept: Accept) => Promise<boolean>>

/** What can be done to a game, whatever it is for. */
export interface Moves {
  start(accept: Accept): Promise<void>
  beginStop(asked: StopRequest): void
  /** What comes after the stop that is under way; false where that is so already. */
  changeMind(accept: Accept, asked: StopRequest): Promise<boolean>
  /** It is not started again, or at all. */
  giveUp(accept: Accept): Promise<true>
  /** After the machine has started, until it is its turn. */
  isQueued(): boolean
}

export function handlersOf({ start, beginStop, changeMind, giveUp, isQueued }: Moves): Record<PowerState, Handlers> {
  const nothing = async () => false
  const begin = async (accept: Accept) => {
    await start(accept)
    return true
  }
  const stopNow = (asked: StopRequest) => async (accept: Accept) => {
    if (isQueued()) return asked === 'stop' && giveUp(accept)
    await accept()
    beginStop(asked)
    return true
  }
  const active: Handlers = { start: nothing, stop: stopNow('stop'), restart: stopNow('restart') }
  return {
    stopped: { start: begin, stop: nothing, restart: begin },
    sleeping: { start: begin, stop: giveUp, restart: begin },
    starting: active,
    running: active,
    stopping: {
      start: async () => {
        throw fail('server_busy', 'The game is stopping. Use `restart` to have it started again after that.')
      },
      stop: (accept) => changeMind(accept, 'stop'),
      restart: (accept) => changeMind(accept, 'restart'),
    },
    crashed: { start: begin, stop: giveUp, restart: begin },
  }
}
