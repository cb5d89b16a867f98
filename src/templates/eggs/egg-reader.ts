// Reads values out of an egg, and says what was done to fit them into a template.
import type { Ledger, Path } from './ledger.ts'

export interface EggReader {
  ledger: Ledger
  value(path: Path): unknown
  /** One line of text; what does not fit is cut, and said to be. undefined where there is no text. */
  line(path: Path, maxChars: number): string | undefined
  /** The same with line breaks. */
  prose(path: Path, maxChars: number): string | undefined
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is taken out
const LINE_CONTROLS = /[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is taken out
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+/g

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function createEggReader(egg: unknown, ledger: Ledger): EggReader {
  const value = (path: Path): unknown =>
    path.reduce<unknown>((inner, name) => {
      const isIn = typeof inner === 'object' && inner !== null && Object.hasOwn(inner, name)
      return isIn ? (inner as Record<string | number, unknown>)[name] : undefined
    }, egg)

  function text(path: Path, maxChars: number, controls: RegExp): string | undefined {
    const found = value(path)
    if (found === null || found === undefined || found === '') return undefined
    if (typeof found !== 'string') {
      ledger.dropped(path, 'must be text')
      return undefined
    }
    const clean = found.toWellFormed().replace(controls, ' ')
    const kept = [...clean].length > maxChars ? [...clean].slice(0, maxChars).join('') : clean
    if (kept === found) ledger.carried(path)
    else if (kept.length < clean.length) ledger.changed(path, `is cut after ${maxChars} characters`)
    else ledger.changed(path, 'has no control characters any more')
    return kept
  }

  return {
    ledger,
    value,
    line: (path, maxChars) => text(path, maxChars, LINE_CONTROLS),
    prose: (path, maxChars) => text(path, maxChars, CONTROLS),
  }
}
