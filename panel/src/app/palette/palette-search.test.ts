import assert from 'node:assert/strict'
import { test } from 'node:test'
import { searchItems } from './palette-search.ts'

const item = (id: string, title: string, keywords = '', isOffered = false) => ({ id, title, keywords, isOffered })
const items = [
  item('home', 'Servers', '', true),
  item('start', 'Start Castle', 'power'),
  item('open', 'Castle', 'server', true),
  item('files', 'Castle: Files', 'upload'),
]
const found = (search: string) => searchItems(items, search).map(({ id }) => id)

test('nothing typed shows the pages and servers, and words are found in any order', () => {
  assert.deepEqual(found(''), ['home', 'open'])
  assert.deepEqual(found('files CASTLE'), ['files'])
  assert.deepEqual(found('upload'), ['files'])
  assert.deepEqual(found('nothing'), [])
})

test('what begins as it was typed comes first', () => {
  assert.deepEqual(found('castle'), ['open', 'files', 'start'])
})
