// A list of very many pages: those that somebody sees are read again, and the others when they come into sight.
import type { InfiniteData } from '@tanstack/react-query'
import type { Page } from '../../../../src/sdk/index.ts'

/** Rows, both included. */
export interface Sight {
  first: number
  last: number
}

type Pages<T> = InfiniteData<Page<T>, string | null>

/** From the first page to the last that have these rows, by their index. */
export function pagesOf<T>({ pages }: Pages<T>, sight: Sight): { from: number; to: number } {
  let [from, to, row] = [0, 0, 0]
  for (const [index, { data }] of pages.entries()) {
    if (row <= sight.first) from = index
    if (row <= sight.last) to = index
    row += data.length
  }
  return { from, to: Math.max(from, to) }
}

/**
 * Reads the pages in sight again, each from where the one before it ends now. Answers what is shown from then on; the same object where
 * nothing has changed. Where the last of them ends somewhere else than before, those behind it go: they are read when they are scrolled to.
 */
export async function readInSight<T>(
  shown: Pages<T>,
  sight: Sight,
  read: (cursor: string | null) => Promise<Page<T>>,
): Promise<Pages<T>> {
  const { from, to } = pagesOf(shown, sight)
  const pages: Page<T>[] = []
  const pageParams: (string | null)[] = []
  let cursor: string | null = shown.pageParams[from] ?? null
  for (let index = from; index <= to; index++) {
    const page = await read(cursor)
    pageParams.push(cursor)
    pages.push(isSame(page, shown.pages[index]) ? (shown.pages[index] ?? page) : page)
    cursor = page.nextCursor
    if (cursor === null) break
  }
  const isAsBefore = pages.length === to - from + 1 && pages.every((page, index) => page === shown.pages[from + index])
  if (isAsBefore) return shown
  const isTailRight = cursor !== null && cursor === shown.pageParams[to + 1]
  return {
    pages: [...shown.pages.slice(0, from), ...pages, ...(isTailRight ? shown.pages.slice(to + 1) : [])],
    pageParams: [
      ...shown.pageParams.slice(0, from),
      ...pageParams,
      ...(isTailRight ? shown.pageParams.slice(to + 1) : []),
    ],
  }
}

const isSame = <T>(one: Page<T>, other: Page<T> | undefined) => JSON.stringify(one) === JSON.stringify(other)
