import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLong, joinPages, pollPages } from './paged-list.ts'

const page = (...ids: string[]) => ({ data: ids.map((id) => ({ id })), nextCursor: null })
const idOf = ({ id }: { id: string }) => id
const stateOf = (count: number) => ({ state: { data: { pages: Array(count).fill(page()) } } })

test('an item that has moved while pages were read is shown once, where it was read last', () => {
  const pages = [page('a', 'b', 'c'), page('d', 'b', 'e')]
  const first = joinPages(pages.slice(0, 1), idOf)
  for (const before of [null, first]) {
    assert.deepEqual(joinPages(pages, idOf, before).items.map(idOf), ['a', 'c', 'd', 'b', 'e'])
  }
})

test('a page that is read in addition is put behind the others, and what was read again replaces what was there', () => {
  const pages = [page('a', 'b'), page('c')]
  const first = joinPages(pages.slice(0, 1), idOf)
  const both = joinPages(pages, idOf, first)
  assert.deepEqual(both.items.map(idOf), ['a', 'b', 'c'])
  assert.equal(joinPages(pages, idOf, both), both)
  assert.deepEqual(joinPages([page('new', 'a'), page('c')], idOf, both).items.map(idOf), ['new', 'a', 'c'])
})

test('a few pages are read again every two seconds, more of them less often', () => {
  assert.equal(pollPages(2000)({ state: { data: undefined } }), 2000)
  assert.equal(pollPages(2000)(stateOf(5)), 2000)
  assert.equal(pollPages(2000)(stateOf(10)), 4000)
  assert.deepEqual([isLong(5), isLong(6)], [false, true])
})
