// A theme is what one round is about: who does what, and which faults are put in their way. The checker is the same for all.
import type { Engine } from '../../../../src/control/db/database.ts'
import type { Round } from '../round.ts'

export interface Theme {
  about: string
  /** The faults of the issue that it is aimed at, so that a mutant knows where to look. */
  aimedAt: readonly string[]
  /** Both by default. */
  engines?: readonly Engine[]
  /** A reason not to run here, such as that mounting needs root. */
  skip?: () => string | false
  settings?: Record<string, string>
  /** Before the service starts for the first time, in its empty data directory; undone after the round. */
  prepare?: (dataDir: string) => Disposable
  run(round: Round): Promise<void>
}
