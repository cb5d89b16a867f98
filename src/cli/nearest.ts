/** The candidate that a mistyped word was most likely meant to be, if any is close enough. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const scored = candidates.map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
  const [best] = scored.sort((a, b) => a.distance - b.distance)
  if (!best) return undefined
  const begins = word.length >= 2 && best.candidate.startsWith(word)
  return begins || best.distance <= Math.max(1, Math.floor(best.candidate.length / 3)) ? best.candidate : undefined
}

/** Levenshtein's. */
function distanceOf(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(swap, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}
