import assert from 'node:assert/strict'
import { test } from 'node:test'
import { orderKey } from '../format/entries.ts'
import { createWantedPlaces, type WantedDirectory } from './wanted-places.ts'

function filled() {
  const prepared: string[] = []
  const placeOf = createWantedPlaces((directory: WantedDirectory) => {
    prepared.push(directory.path)
    return directory
  })
  return { placeOf, prepared }
}

test('an entry belongs into the directory that its path says, whatever bytes its names have', () => {
  const { placeOf } = filled()
  const names = ['a', 'plain.txt', 'größe 二', '"quoted"\\', ' ', '\u{10fe80}raw\u{10feff}', 'line\nfeed', '...']
  for (const path of [...names.map((name) => `/${name}`), ...names.map((name) => `/${name}/${name}/${name}`)]) {
    const { directory, name } = placeOf(orderKey(path))
    const segments = path.slice(1).split('/')
    assert.deepEqual([...directory.segments, name], segments)
    assert.equal(directory.path, `/${segments.slice(0, -1).join('/')}`)
  }
})

test('a directory is prepared once for all that follow each other in it', () => {
  const { placeOf, prepared } = filled()
  for (const path of ['/a', '/b', '/b/1', '/b/2', '/bb/3', '/b/1/4', '/c']) placeOf(orderKey(path))
  assert.deepEqual(prepared, ['/', '/b', '/bb', '/b/1', '/'])
})

test('no name of a manifest leads out of the tree', () => {
  const { placeOf } = filled()
  for (const key of [
    '',
    '.',
    '..',
    '\0a',
    'a\0',
    'a\0..',
    '..\0a',
    'a\0\0b',
    'a\0.\0b',
    '\0',
    'a\0b\0..',
    'a/b',
    'a\0../b',
  ])
    assert.throws(() => placeOf(key), /a manifest names/, JSON.stringify(key))
})
