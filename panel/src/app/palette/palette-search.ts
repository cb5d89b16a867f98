export interface PaletteItem {
  id: string
  title: string
  /** What it is found by beside its title. */
  keywords: string
  /** Whether it is there before anybody has typed. */
  isOffered: boolean
}

const SHOWN_AT_MOST = 14

/** Every word is found; titles that begin with what was typed come first. */
export function searchItems<T extends PaletteItem>(items: readonly T[], search: string): T[] {
  const typed = search.trim().toLowerCase()
  if (typed === '') return items.filter(({ isOffered }) => isOffered).slice(0, SHOWN_AT_MOST)
  const words = typed.split(/\s+/)
  const found = items.filter(({ title, keywords }) => {
    const text = `${title} ${keywords}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
  const rank = ({ title }: T) => {
    const lower = title.toLowerCase()
    if (lower.startsWith(typed)) return 0
    return words.every((word) => lower.includes(word)) ? 1 : 2
  }
  return found.toSorted((a, b) => rank(a) - rank(b)).slice(0, SHOWN_AT_MOST)
}
