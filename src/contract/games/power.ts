// Whether the game of a server runs, and what may be done about it.
import { Nullable, OneOf, type Static, Timestamp, Type } from '../schema.ts'

export const POWER_STATES = {
  stopped: 'The game does not run, and is not meant to',
  starting: 'The process runs; players cannot join yet',
  running: 'Players can join',
  stopping: 'It was told to stop; `step` says what is waited for',
  crashed: 'It ended without being told to. `step` says when it is started again, if it is',
  sleeping: 'It was stopped because nobody played, and starts when somebody joins',
} as const
export type PowerState = keyof typeof POWER_STATES

export const EXIT_REASONS = {
  requested: 'It was told to stop, by `stop` or `restart`',
  in_game: 'It was told to stop from inside, or ended by itself as if it had been; not a crash',
  crashed: 'It ended by itself',
  out_of_memory: 'The kernel ended it because it used more memory than it may',
  killed: 'It was ended by SIGKILL: by `kill`, because it did not stop in time, or by somebody else',
} as const
export type ExitReason = keyof typeof EXIT_REASONS

const keysOf = <T extends string>(table: Readonly<Record<T, string>>) => Object.keys(table) as [T, ...T[]]
const describe = (table: Readonly<Record<string, string>>) =>
  Object.entries(table)
    .map(([name, sentence]) => `\`${name}\`: ${sentence}.`)
    .join(' ')

export const Exit = Type.Object({
  reason: OneOf(keysOf(EXIT_REASONS), { description: describe(EXIT_REASONS) }),
  code: Nullable(Type.Integer()),
  signal: Nullable(Type.String()),
  at: Timestamp,
  lastLine: Nullable(
    Type.Integer({ description: 'The number of the last line that it wrote to the console; null if it wrote none' }),
  ),
})
export type Exit = Static<typeof Exit>

export const Power = Type.Object({
  state: OneOf(keysOf(POWER_STATES), { description: describe(POWER_STATES) }),
  since: Nullable(Timestamp),
  step: Nullable(Type.String({ description: 'What is waited for, for people' })),
  exit: Type.Union([Exit, Type.Null()], { description: 'How it ended last' }),
})
export type Power = Static<typeof Power>

export const ENFORCERS = ['cgroup', 'rlimit', 'none'] as const
const Enforced = (what: string) => OneOf(ENFORCERS, { description: `What keeps it to its ${what}` })

export const Runtime = Type.Object({
  kind: OneOf(['process', 'container']),
  isolation: OneOf(['bubblewrap', 'user', 'none'], {
    description:
      '`bubblewrap`: it sees a read-only system, its own files and a private /tmp, and nothing else. `user`: it is a user of its ' +
      'own, to whom the service, its data and other servers are closed. `none`: it sees what its user sees',
  }),
  user: Nullable(Type.Integer({ description: 'The user id that it runs as, where it has one of its own' })),
  enforced: Type.Object({
    memory: Enforced('memory'),
    cpu: Enforced('CPU'),
    processes: Enforced('number of processes'),
  }),
})
export type Runtime = Static<typeof Runtime>

export const POWER_ACTIONS = ['start', 'stop', 'restart', 'kill'] as const
export type PowerAction = (typeof POWER_ACTIONS)[number]

export const STOPPED: Power = { state: 'stopped', since: null, step: null, exit: null }
