// Nothing of an egg is lost without a word: every value in it is claimed by whoever carries it over, changes it or drops
// it, and what nobody has claimed in the end is reported as dropped.
import type { ReportEntry } from '../../contract/games/templates.ts'
import { escapeName } from '../document.ts'

export type Level = ReportEntry['level']
export type Path = readonly (string | number)[]

export interface Ledger {
  carried(path: Path, message?: string): void
  changed(path: Path, message: string): void
  dropped(path: Path, message: string): void
  /** In the order of the egg; branches of which everything was carried over as one entry. */
  report(): ReportEntry[]
}

const AS_IT_IS = 'as it is'
export const UNKNOWN = 'is nothing that is known here'
const pointerOf = (path: Path) => path.map((name) => `/${escapeName(String(name))}`).join('')

export function createLedger(egg: unknown): Ledger {
  const claims = new Map<string, { level: Level; message: string }[]>()
  const claim = (path: Path, level: Level, message: string) => {
    const pointer = pointerOf(path)
    const made = claims.get(pointer)
    if (made) made.push({ level, message })
    else claims.set(pointer, [{ level, message }])
  }

  function entriesOf(value: unknown, path: Path, inherited: boolean): ReportEntry[] {
    const pointer = pointerOf(path)
    const own = (claims.get(pointer) ?? []).map((made) => ({ path: pointer, ...made }))
    const isClaimed = inherited || own.length > 0
    if (isNothing(value)) return []
    if (typeof value !== 'object' || value === null)
      return isClaimed ? own : [{ path: pointer, level: 'dropped', message: UNKNOWN }]
    const inside = Object.entries(value).map(([name, inner]) => entriesOf(inner, [...path, name], isClaimed))
    return [...own, ...folded(inside, pointer, Object.values(value))]
  }

  return {
    carried: (path, message = AS_IT_IS) => claim(path, 'carried', message),
    changed: (path, message) => claim(path, 'changed', message),
    dropped: (path, message) => claim(path, 'dropped', message),
    report: () => entriesOf(egg, [], false),
  }
}

/** Where every part was carried over as it is, saying so once is enough. */
function folded(inside: ReportEntry[][], pointer: string, values: unknown[]): ReportEntry[] {
  const isWhole = inside.every(
    (entries, index) =>
      isNothing(values[index]) ||
      (entries.length > 0 && entries.every(({ level, message }) => level === 'carried' && message === AS_IT_IS)),
  )
  const isWorthSaying = isWhole && pointer !== '' && inside.some((entries) => entries.length > 0)
  return isWorthSaying ? [{ path: pointer, level: 'carried', message: AS_IT_IS }] : inside.flat()
}

/** There is nothing in it that could be lost. */
function isNothing(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true
  return typeof value === 'object' && Object.keys(value).length === 0
}
