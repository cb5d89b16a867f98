/** By the viewer's days, in the order given. */
export function groupByDay<T extends { createdAt: string }>(
  items: readonly T[],
  locale: string,
): { day: string; items: T[] }[] {
  const format = new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' })
  const days = new Map<string, T[]>()
  for (const item of items) {
    const day = format.format(new Date(item.createdAt))
    const found = days.get(day)
    if (found) found.push(item)
    else days.set(day, [item])
  }
  return [...days].map(([day, found]) => ({ day, items: found }))
}
