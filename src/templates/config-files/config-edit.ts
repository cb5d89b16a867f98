// What every editor of config files shares: the settings to make, and when one is made at all.

import type { LaunchSetting } from '../../contract/games/launch.ts'
import { compilePattern } from '../linear-pattern.ts'
import type { VariableValue } from '../variables.ts'

export type ConfigSetting = LaunchSetting

/** The file is not what its format says, or has something else where a setting belongs. */
export class ConfigFault extends Error {}

/** A text that replaces what stands between two places. */
export interface Splice {
  start: number
  end: number
  text: string
}

/** Splices do not overlap. */
export function applySplices(text: string, splices: readonly Splice[]): string {
  const ordered = splices.toSorted((one, other) => other.start - one.start || other.end - one.end)
  return ordered.reduce(
    (edited, { start, end, text: added }) => edited.slice(0, start) + added + edited.slice(end),
    text,
  )
}

export const isConditional = ({ ifEquals, ifMatches }: ConfigSetting) =>
  ifEquals !== undefined || ifMatches !== undefined

/** Whether what is there is to be replaced; `current` is undefined where there is nothing. */
export function isWanted(setting: ConfigSetting, current: string | undefined): boolean {
  const { ifEquals, ifMatches } = setting
  if (!isConditional(setting)) return current !== String(setting.value)
  if (current === undefined) return false
  if (ifEquals !== undefined) return current === String(ifEquals)
  return compilePattern(ifMatches ?? '')?.test(current) ?? false
}

export const lineBreakOf = (text: string) => (text.includes('\r\n') ? '\r\n' : '\n')

/** As JSON writes them, which YAML and TOML read too. */
export const literalOf = (value: VariableValue) => JSON.stringify(value)

export const ANY = '*'
export const fits = (wanted: string, name: string) => wanted === ANY || wanted === name
