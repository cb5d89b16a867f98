// A server whose game is stopped while nobody plays, and started by who comes to play.
import { SLEEP } from '../fixed-limits.ts'
import { Closed, type Static, Type } from '../schema.ts'

export const SleepSetting = Closed({
  afterMinutes: Type.Integer({
    minimum: SLEEP.minutesMin,
    maximum: SLEEP.minutesMax,
    description: 'How long nobody has played',
  }),
})
export type SleepSetting = Static<typeof SleepSetting>
