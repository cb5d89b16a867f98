// What a rehearsal of a backup says: whether the game came up from it.
import { REHEARSAL_SECONDS } from '../fixed-limits.ts'
import { Closed, Nullable, OneOf, type Static, Timestamp, Type } from '../schema.ts'

export const Rehearsal = Type.Object({
  outcome: OneOf(['passed', 'failed'], {
    description: '`passed`: the game came up from the backup. `failed`: it did not; `reason` says why',
  }),
  at: Timestamp,
  reason: Nullable(Type.String({ description: 'Why it failed, or what else there is to say' })),
})
export type Rehearsal = Static<typeof Rehearsal>

export const RehearsalLog = Type.Object({
  ...Rehearsal.properties,
  log: Type.Array(Type.String(), {
    description: 'The last lines of its console, oldest first: 200 at most, of 1,000 characters each, 64 KiB in all',
  }),
})
export type RehearsalLog = Static<typeof RehearsalLog>

export const RehearsalRequest = Closed({
  timeoutSeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: REHEARSAL_SECONDS.max,
      default: REHEARSAL_SECONDS.default,
      description: 'Within which the game has to be up',
    }),
  ),
})
export type RehearsalRequest = Static<typeof RehearsalRequest>
