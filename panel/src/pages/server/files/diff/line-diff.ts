// Which lines were taken away and which were added (Myers: An O(ND) Difference Algorithm).

export interface DiffLine {
  kind: 'same' | 'removed' | 'added'
  text: string
}

/** Of texts that differ in more lines, all that lies between their common ends counts as replaced. */
const MAX_DIFFERENCES = 600

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split('\n')
  const b = after.split('\n')
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++
  const middle = diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end))
  return [...same(a.slice(0, start)), ...middle, ...same(a.slice(a.length - end))]
}

const as = (kind: DiffLine['kind']) => (lines: readonly string[]) => lines.map((text) => ({ kind, text }))
const same = as('same')
const removed = as('removed')
const added = as('added')

function diffMiddle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const trace = searchPath(a, b)
  return trace === null ? [...removed(a), ...added(b)] : walkBack(a, b, trace)
}

/** For each number of differences, how far each diagonal comes. Null: there are too many. */
function searchPath(a: readonly string[], b: readonly string[]): Map<number, number>[] | null {
  const trace: Map<number, number>[] = []
  let reached = new Map<number, number>([[1, 0]])
  for (let differences = 0; differences <= Math.min(a.length + b.length, MAX_DIFFERENCES); differences++) {
    const next = new Map<number, number>()
    for (let k = -differences; k <= differences; k += 2) {
      let x = isDown(reached, k, differences) ? (reached.get(k + 1) ?? 0) : (reached.get(k - 1) ?? 0) + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      next.set(k, x)
      if (x >= a.length && x - k >= b.length) return [...trace, reached, next]
    }
    trace.push(reached)
    reached = next
  }
  return null
}

function isDown(reached: ReadonlyMap<number, number>, k: number, differences: number): boolean {
  return k === -differences || (k !== differences && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1))
}

function walkBack(a: readonly string[], b: readonly string[], trace: readonly Map<number, number>[]): DiffLine[] {
  const lines: DiffLine[] = []
  let x = a.length
  let y = b.length
  for (let differences = trace.length - 2; differences >= 0; differences--) {
    const reached = trace[differences] ?? new Map<number, number>()
    const k = x - y
    const previous = isDown(reached, k, differences) ? k + 1 : k - 1
    const fromX = differences === 0 ? 0 : (reached.get(previous) ?? 0)
    const fromY = differences === 0 ? 0 : fromX - previous
    while (x > fromX && y > fromY) {
      x--
      y--
      lines.push({ kind: 'same', text: a[x] ?? '' })
    }
    if (differences === 0) break
    if (x === fromX) lines.push({ kind: 'added', text: b[--y] ?? '' })
    else lines.push({ kind: 'removed', text: a[--x] ?? '' })
  }
  return lines.reverse()
}
