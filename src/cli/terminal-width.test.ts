// What is shown on a terminal fits its lines.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProgress } from './progress.ts'
import { createPaint, formatTable } from './text.ts'

const progress = { bytesDone: 2 ** 30, bytesTotal: 2 ** 31, filesDone: 100, filesTotal: 200 }

test('the bar takes the room that the words leave, and goes where there is none', () => {
  const widest = formatProgress('Uploading', progress, 60_000)
  assert.match(widest, /^Uploading {2}\[#{12}-{12}\] {2}50% {2}1\.0 GiB of 2\.0 GiB {2}100 of 200 files .* 60 s left$/)
  const narrower = formatProgress('Uploading', progress, 60_000, widest.length - 10)
  assert.equal(narrower.length, widest.length - 10)
  assert.match(narrower, /\[#{7}-{7}\] {2}50%/)
  assert.match(formatProgress('Uploading', progress, 60_000, 79), /^Uploading {3}50% .* 60 s left$/)
})

test('a row of a table is cut at the width of the terminal, by what is seen', () => {
  const rows = [
    { name: 'Castle', details: 'x'.repeat(200) },
    { name: 'Tower', details: '城'.repeat(100) },
  ]
  const columns = [
    { title: 'NAME', cell: ({ name }: { name: string }) => name },
    { title: 'DETAILS', cell: ({ details }: { details: string }) => details },
  ]
  const paint = createPaint(false)
  assert.deepEqual(formatTable(rows, columns, paint, 48).split('\n'), [
    'NAME    DETAILS',
    `Castle  ${'x'.repeat(39)}…`,
    `Tower   ${'城'.repeat(19)}…`,
  ])
  assert.match(formatTable(rows, columns, paint), /x{200}\n/, 'in full where nobody looks')
})
