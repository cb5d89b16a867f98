import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pagesOf, readInSight } from './pages-in-sight.ts'

/** A list in order, read by pages of two; a cursor is the last name before the page. */
function createList(names: string[]) {
  let reads = 0
  const read = async (cursor: string | null) => {
    reads++
    const after = names.filter((name) => cursor === null || name > cursor).sort()
    const data = after.slice(0, 2)
    return { data, nextCursor: after.length > 2 ? (data.at(-1) ?? null) : null }
  }
  const readAll = async () => {
    const pages = []
    const pageParams: (string | null)[] = []
    for (let cursor: string | null = null, isFirst = true; isFirst || cursor !== null; isFirst = false) {
      const page = await read(cursor)
      pages.push(page)
      pageParams.push(cursor)
      cursor = page.nextCursor
    }
    return { pages, pageParams }
  }
  return { names, read, readAll, reads: () => reads }
}

const namesOf = ({ pages }: { pages: { data: string[] }[] }) => pages.flatMap(({ data }) => data)

test('rows are found in the pages that have them', async () => {
  const shown = await createList(['a', 'b', 'c', 'd', 'e']).readAll()
  assert.deepEqual(pagesOf(shown, { first: 0, last: 1 }), { from: 0, to: 0 })
  assert.deepEqual(pagesOf(shown, { first: 1, last: 2 }), { from: 0, to: 1 })
  assert.deepEqual(pagesOf(shown, { first: 4, last: 90 }), { from: 2, to: 2 })
})

test('only what is in sight is read, and what has not changed stays the same object', async () => {
  const list = createList(['a', 'b', 'c', 'd', 'e', 'f'])
  const shown = await list.readAll()
  const before = list.reads()
  assert.equal(await readInSight(shown, { first: 2, last: 3 }, list.read), shown)
  assert.equal(list.reads() - before, 1)
})

test('what comes, goes or changes in sight is shown, and nothing is left out between the pages', async () => {
  for (const [change, expected] of [
    [['c1'], ['a', 'b', 'c', 'c1']],
    [['-c'], ['a', 'b', 'd', 'e']],
    [
      ['-c', '-d', '-e', '-f'],
      ['a', 'b'],
    ],
  ] as const) {
    const list = createList(['a', 'b', 'c', 'd', 'e', 'f'])
    const shown = await list.readAll()
    for (const each of change) {
      if (each.startsWith('-')) list.names.splice(list.names.indexOf(each.slice(1)), 1)
      else list.names.push(each)
    }
    const now = await readInSight(shown, { first: 2, last: 3 }, list.read)
    assert.deepEqual(namesOf(now), expected)
    // Where it goes on is right: no name is missed or doubled behind it.
    const rest = []
    for (let cursor = now.pages.at(-1)?.nextCursor ?? null; cursor !== null; ) {
      const page = await list.read(cursor)
      rest.push(...page.data)
      cursor = page.nextCursor
    }
    assert.deepEqual([...namesOf(now), ...rest], list.names.toSorted())
  }
})

test('pages behind the sight stay where they still fit', async () => {
  const list = createList(['a', 'b', 'c', 'd', 'e', 'f'])
  const shown = await list.readAll()
  list.names.splice(list.names.indexOf('c'), 1, 'c2')
  assert.deepEqual(namesOf(await readInSight(shown, { first: 2, last: 3 }, list.read)), ['a', 'b', 'c2', 'd', 'e', 'f'])
})
