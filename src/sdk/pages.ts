import type { Page } from '../contract/schema.ts'

/** Every item of every page, a page at a time as they are asked for. */
export async function* itemsOf<T, Q extends { cursor?: string }>(
  readPage: (query: Q) => Promise<Page<T>>,
  query: Q,
): AsyncGenerator<T, void, undefined> {
  let page = await readPage(query)
  for (;;) {
    yield* page.data
    if (page.nextCursor === null) return
    page = await readPage({ ...query, cursor: page.nextCursor })
  }
}
