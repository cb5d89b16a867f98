// What the agent keeps of a game on disk: enough to go on with it, or to start it again, without asking anybody.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { GameLimits } from '../../../contract/agent/agent-games.ts'
import type { Launch } from '../../../contract/games/launch.ts'
import { type Power, type Runtime, STOPPED } from '../../../contract/games/power.ts'
import type { SleepSetting } from '../../../contract/games/sleep.ts'
import { readRecord, writeRecord } from '../../../kit/files/durable-record.ts'
import type { Asked } from './exits.ts'

export interface GameRecord {
  power: Power
  runtime: Runtime | null
  /** Whether it is meant to run: it is started again after a crash, and after the machine was down. */
  isWanted: boolean
  /** What the run that is under way was told to do. */
  asked: Asked
  /** The run under way; null while there is none. */
  runId: string | null
  /** The boot that the run, or the last one, belongs to. */
  bootId: string | null
  /** Of the entry that tells that the run has come up. */
  readyFactId: string | null
  runningSince: number | null
  /** Starts after crashes, one after the other. */
  restarts: number
  /** When it is started again after a crash. */
  restartAt: number | null
  autoRestart: boolean
  /** null: it never sleeps. */
  sleep: SleepSetting | null
  /** Of the next start. */
  launch: Launch | null
  limits: GameLimits
  /** Of the run under way, or of the last one: how it is stopped, heard and held still does not change meanwhile. */
  runLaunch: Launch | null
}

export const NEVER_STARTED: GameRecord = {
  power: STOPPED,
  runtime: null,
  isWanted: false,
  asked: null,
  runId: null,
  bootId: null,
  readyFactId: null,
  runningSince: null,
  restarts: 0,
  restartAt: null,
  autoRestart: true,
  sleep: null,
  launch: null,
  limits: { memoryBytes: null, cpuPercent: null, processes: null },
  runLaunch: null,
}

export const readGame = (file: string): GameRecord => ({ ...NEVER_STARTED, ...readRecord<GameRecord>(file) })

export function writeGame(file: string, record: GameRecord): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeRecord(file, record)
}
