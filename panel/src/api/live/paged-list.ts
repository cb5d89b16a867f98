// Lists that are read a page at a time while things come and go. A cursor says after which item the next page begins, so whatever
// comes or goes before it moves nothing behind it.
import { useRef } from 'react'
import type { Page } from '../../../../src/sdk/index.ts'

interface PagesState {
  state: { data: { pages: readonly unknown[] } | undefined }
}

/** So many pages are read again in one go without being a burden. */
const PAGES_AT_ONCE = 5

/** Whether a list of so many pages is read again less often than every `pollMs`: what it shows needs another way to be true. */
export const isLong = (pageCount: number) => pageCount > PAGES_AT_ONCE

/** When to read so many pages again: longer lists less often. */
export const pollAfter = (pollMs: number, pageCount: number) => pollMs * Math.max(1, pageCount / PAGES_AT_ONCE)

/** When to read all pages that are shown again. */
export const pollPages =
  (pollMs: number) =>
  ({ state: { data } }: PagesState): number =>
    pollAfter(pollMs, data?.pages.length ?? 1)

interface Joined<T> {
  pages: readonly Page<T>[]
  items: readonly T[]
  keys: Set<string>
}

/**
 * What has moved from one page to another between their answers is in both: where it was read last is where it is. `before` is what
 * the last call has answered: a folder of 100,000 files has a thousand pages, which are not gone through again for each.
 */
export function joinPages<T>(
  pages: readonly Page<T>[],
  keyOf: (item: T) => string,
  before: Joined<T> | null = null,
): Joined<T> {
  if (before?.pages === pages) return before
  const added = before && isContinued(before.pages, pages) ? (pages.at(-1)?.data ?? []) : null
  if (before && added && !added.some((item) => before.keys.has(keyOf(item)))) {
    for (const item of added) before.keys.add(keyOf(item))
    return { pages, items: [...before.items, ...added], keys: before.keys }
  }
  const items = new Map<string, T>()
  for (const item of pages.flatMap(({ data }) => data)) {
    const key = keyOf(item)
    items.delete(key)
    items.set(key, item)
  }
  return { pages, items: [...items.values()], keys: new Set(items.keys()) }
}

const isContinued = (before: readonly unknown[], pages: readonly unknown[]) =>
  pages.length === before.length + 1 && before.every((page, index) => page === pages[index])

/** The items of all pages that were read, each once; undefined until the first was. `keyOf` is the same for one list at all times. */
export function useItemsOf<T>(
  pages: readonly Page<T>[] | undefined,
  keyOf: (item: T) => string,
): readonly T[] | undefined {
  const joined = useRef<Joined<T>>(null)
  if (pages) joined.current = joinPages(pages, keyOf, joined.current)
  return pages && joined.current?.items
}
