// What is known of one game, as it is shown and as it is on disk.
import type { GameState } from '../../../contract/agent/agent-games.ts'
import type { Exit, PowerState } from '../../../contract/games/power.ts'
import { iso } from '../../../kit/time.ts'
import { type GameRecord, readGame, writeGame } from './game-record.ts'
import type { Timers } from './stop-ladder.ts'

export interface GameStateDeps {
  /** Where the record is. */
  file: string
  timers: Timers
  changed(): void
  onUnexpected(error: unknown): void
}

export interface KnownGame {
  record(): GameRecord
  read(): GameState
  save(change: Partial<GameRecord>): void
  /** Fails where the disk does not take it: for what nobody would find again otherwise. */
  saveDurably(change: Partial<GameRecord>): void
  inState(state: PowerState, step?: string | null): Pick<GameRecord, 'power'>
  enter(state: PowerState, change?: Partial<GameRecord>, step?: string | null): void
  /** As `enter`, and on disk a moment later: for what a later service finds out by itself. */
  enterUnsaved(state: PowerState, change: Partial<GameRecord>): void
  /** What is not on disk yet, is now. */
  flush(): void
  /** How it ended; on disk with the state that comes next. */
  noteExit(exit: Exit): void
  /** What is waited for, for people. */
  tell(step: string | null): void
}

const UNSAVED_FOR_MS = 100

export function createGameState({ file, timers, changed, onUnexpected }: GameStateDeps): KnownGame {
  let record = readGame(file)
  /** Undefined where that is not known. */
  let onDisk: string | undefined
  let unsaved: Disposable | undefined

  /** Two syncs of the disk, by which a start would wait for what has not changed since the last one. */
  function write(next: GameRecord): void {
    const text = JSON.stringify(next)
    if (text === onDisk) return
    onDisk = undefined
    writeGame(file, next)
    onDisk = text
  }

  /** A full disk must not keep the state from being shown as it is; what it could not take is written with the next change. */
  function save(change: Partial<GameRecord>): void {
    record = { ...record, ...change }
    flush()
    changed()
  }

  function flush(): void {
    unsaved?.[Symbol.dispose]()
    unsaved = undefined
    try {
      write(record)
    } catch (error) {
      onUnexpected(error)
    }
  }

  const inState: KnownGame['inState'] = (state, step = null) => ({
    power: { ...record.power, state, step, since: iso(timers.now()) },
  })

  return {
    record: () => record,
    read: () => ({ power: record.power, runtime: record.runtime }),
    save,
    saveDurably(change) {
      const next = { ...record, ...change }
      write(next)
      record = next
      changed()
    },
    inState,
    enter: (state, change = {}, step = null) => save({ ...change, ...inState(state, step) }),
    enterUnsaved(state, change) {
      record = { ...record, ...change, ...inState(state) }
      unsaved ??= timers.after(UNSAVED_FOR_MS, flush)
      changed()
    },
    flush: () => unsaved && flush(),
    noteExit(exit) {
      record = { ...record, power: { ...record.power, exit } }
    },
    tell: (step) => save({ power: { ...record.power, step } }),
  }
}
