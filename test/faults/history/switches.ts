// What the switchboard inside the service under test can be told, and what it answers. Plain data: it travels between
// processes and threads.

/** What happens at a call that a rule matches. */
export type Fault =
  | { errno: string }
  | { kill: 'before' | 'after' }
  /** The answer of a statement of PostgreSQL is late by up to so much: what comes in another order then was never sure. */
  | { delayMs: number }

export interface Rule {
  /**
   * A regular expression. File calls read `renameSync agent/files/sandbox/directory.ts:renameAt < agent/…`, an opening to write
   * `openSync+w …`; statements are SQL.
   */
  match: string
  /** So many matching calls pass before the first that does not. */
  skip: number
  /** So many calls do not pass; the rule is spent then. */
  times: number
  fault: Fault
}

export interface Switches {
  files: Rule[]
  /** A statement that is refused fails as on a full disk. */
  statements: Rule[]
  /** Added to the clock of the whole process. */
  clockOffsetMs: number
  /** Whether call sites are counted. */
  isCounting: boolean
}

export const ALL_OFF: Switches = { files: [], statements: [], clockOffsetMs: 0, isCounting: false }

export type Order = { kind: 'set'; switches: Switches } | { kind: 'sites' }
/** `sites`: how often each was called while they were counted. `struck`: the calls that did not pass, oldest first. */
export type Report = { kind: 'set' } | { kind: 'sites'; sites: Record<string, number>; struck: string[] }

/** The environment cannot carry a set of switches that changes; this is what counts from the first line on. */
export const FIRST_SWITCHES = 'HISTORY_SWITCHES'
