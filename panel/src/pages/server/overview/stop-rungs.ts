// The steps of a template's stop ladder, and which of them the service says it is at.
import type { Template } from '../../../../../src/sdk/index.ts'

export interface Rung {
  key: string
  /** What is done: a command, or a signal. */
  action: string
  /** What the service says while it waits for it. */
  said: string
  seconds: number
}

export const rungsOf = (stop: Template['stop']): Rung[] =>
  stop.map(({ command, signal, timeoutSeconds, message }, index) => {
    const action = command ?? signal ?? ''
    const said = message ?? `waiting for ${command === undefined ? signal : `"${command}"`} to end it`
    return { key: `${index} ${action}`, action, said, seconds: timeoutSeconds }
  })

/** One past the last is the kill that ends the ladder. */
export function currentRung(rungs: readonly Rung[], step: string): number {
  const index = rungs.findIndex(({ said }) => said === step)
  if (index >= 0) return index
  return step === 'it did not stop in time, and is killed' ? rungs.length : 0
}
