import type { DiffLine } from './line-diff.ts'

export type Hunk = { kind: 'lines'; lines: DiffLine[] } | { kind: 'skipped'; count: number }

const CONTEXT = 3

/** What changed with a few lines around it; what lies between is only counted. */
export function hunksOf(lines: readonly DiffLine[]): Hunk[] {
  const isShown = new Uint8Array(lines.length)
  lines.forEach(({ kind }, index) => {
    if (kind !== 'same') isShown.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1)
  })
  const hunks: Hunk[] = []
  lines.forEach((line, index) => {
    const last = hunks.at(-1)
    if (isShown[index]) {
      if (last?.kind === 'lines') last.lines.push(line)
      else hunks.push({ kind: 'lines', lines: [line] })
    } else if (last?.kind === 'skipped') last.count++
    else hunks.push({ kind: 'skipped', count: 1 })
  })
  return hunks
}
