// The console on disk, without a game.
import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import {
  CONSOLE_KEPT_BYTES,
  CONSOLE_KEPT_MS,
  CONSOLE_LINE_MAX_BYTES,
  CONSOLE_SEGMENT_BYTES,
} from '../../../contract/fixed-limits.ts'
import { makeTree, mount, openDescriptors, withoutRoot } from '../../files/trees.testing.ts'
import { readLastLine, readPage } from './console-reader.ts'
import { createConsoleTail } from './console-tail.ts'
import { openConsoleWriter } from './console-writer.ts'
import { createLineMatcher } from './line-pattern.ts'
import { createLineSplitter } from './line-splitter.ts'
import { segmentName } from './segments.ts'

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-console-'))
  folders.push(folder)
  return folder
}

const NOW = Date.parse('2026-11-15T00:00:00.000Z')
const ALL = { before: null, limit: 500, q: null }
const textOf = (n: number) => Buffer.from(`line ${n} ${'x'.repeat(100)}`)

test('numbers go on across writers, and every line can be read by page and by follow', async () => {
  const folder = newFolder()
  for (let from = 1; from <= 30_000; from += 10_000) {
    using writer = openConsoleWriter(folder, () => NOW)
    for (let n = from; n < from + 10_000; n += 100)
      writer.write(
        'stdout',
        Array.from({ length: 100 }, (_, index) => textOf(n + index)),
      )
    assert.equal(writer.lastLine, from + 9999)
  }
  assert.ok(readdirSync(folder).length > 3, 'it is kept in several files')
  assert.equal(await readLastLine(folder), 30_000)
  const tail = createConsoleTail(folder)
  const followed: number[] = []
  for (let lines = await tail.after(0); lines.length > 0; lines = await tail.after(followed.at(-1) ?? 0))
    for (const { line, text } of lines) {
      assert.equal(text, textOf(line).toString())
      followed.push(line)
    }
  assert.deepEqual([followed.length, followed[0], followed.at(-1)], [30_000, 1, 30_000])
  const [resumed] = await createConsoleTail(folder).after(12_344)
  assert.equal(resumed?.line, 12_345, 'from any line, without having been there before')
  let before: number | null = null
  const paged: number[] = []
  do {
    const page: Awaited<ReturnType<typeof readPage>> = await readPage(folder, 's', { before, limit: 500, q: null })
    paged.push(...page.lines.map(({ line }) => line))
    before = page.next
  } while (before !== null)
  assert.deepEqual(paged, followed.toReversed())
  const found = await readPage(folder, 's', { before: null, limit: 5, q: 'LINE 12345 ' })
  assert.deepEqual(
    found.lines.map(({ line }) => line),
    [12_345],
  )
})

test('a flood is bounded on disk, and the numbers go on', async () => {
  const folder = newFolder()
  using writer = openConsoleWriter(folder, () => NOW)
  const chunk = Array.from({ length: 64 }, () => Buffer.alloc(CONSOLE_LINE_MAX_BYTES - 100, 'x'))
  let written = 0
  while (written < CONSOLE_KEPT_BYTES * 1.2) {
    writer.write('stdout', chunk)
    written += chunk.length * CONSOLE_LINE_MAX_BYTES
  }
  const kept = readdirSync(folder).reduce((bytes, name) => bytes + statSync(join(folder, name)).size, 0)
  assert.ok(kept <= CONSOLE_KEPT_BYTES + CONSOLE_SEGMENT_BYTES, `${kept} bytes are kept`)
  const newest = await readPage(folder, 's', { ...ALL, limit: 1 })
  assert.equal(newest.lines[0]?.line, writer.lastLine)
  const [oldest] = await createConsoleTail(folder).after(0)
  assert.ok(oldest && oldest.line > 1, 'a reader who comes too late sees by the number what has gone')
})

test('lines that are too old go, but never the newest file, which knows the next number', () => {
  const folder = newFolder()
  using writer = openConsoleWriter(folder, () => NOW)
  const big = Array.from({ length: 60 }, () => Buffer.alloc(16_000, 'x'))
  for (let n = 0; n < 3; n++) writer.write('stdout', big)
  const old = new Date(NOW - CONSOLE_KEPT_MS - 1000)
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), old, old)
  writer.prune()
  assert.equal(readdirSync(folder).length, 1)
  writer.write('stdout', [Buffer.from('next')])
  assert.equal(writer.lastLine, 181)
})

test('a disk that is full when the next file is due costs only the lines that came while it was, and says how many', {
  skip: withoutRoot(),
}, async () => {
  const folder = newFolder()
  // Room for the folder itself, one file of the console, and the filler.
  using _mounted = mount(folder, '-t', 'tmpfs', '-o', 'size=4m,nr_inodes=3', 'none')
  using writer = openConsoleWriter(folder, () => NOW)
  const chunk = Array.from({ length: 64 }, () => Buffer.alloc(CONSOLE_LINE_MAX_BYTES - 100, 'x'))
  const filler = join(folder, 'filler')
  writeFileSync(filler, '')
  for (let n = 0; n < 2; n++) writer.write('stdout', chunk)
  assert.equal(writer.lastLine, 128, 'without room for another file it goes on in the one that is there')
  writeFileSync(filler, Buffer.alloc(statfsSync(folder).bavail * 4096))
  writer.write('stdout', chunk)
  assert.equal(writer.lastLine, 128)
  rmSync(filler)
  writer.sync()
  writer.write('stdout', [Buffer.from('room again')])
  assert.equal(readdirSync(folder).length, 2, 'and in a file of its own once there is')
  const { lines } = await readPage(folder, 's', { ...ALL, limit: 2 })
  assert.deepEqual(
    lines.map(({ line, text }) => [line, text]),
    [
      [130, 'room again'],
      [129, '64 lines were lost: the disk took no more.'],
    ],
  )
})

test('a line that a power cut has cut short keeps its number', async () => {
  const folder = newFolder()
  openConsoleWriter(folder, () => NOW).write('stdout', [Buffer.from('one')])
  appendFileSync(join(folder, readdirSync(folder)[0] as string), `${NOW} o tw`)
  using writer = openConsoleWriter(folder, () => NOW)
  writer.write('stderr', [Buffer.from('three')])
  const { lines } = await readPage(folder, 's', ALL)
  assert.deepEqual(
    lines.map(({ line, source, text }) => [line, source, text]),
    [
      [3, 'stderr', 'three'],
      [2, 'stdout', 'tw'],
      [1, 'stdout', 'one'],
    ],
  )
})

test('where the disk takes no end for that line, nothing stays open', { skip: withoutRoot() }, (t) => {
  const folder = makeTree(t)
  using _mounted = mount(folder, '-t', 'tmpfs', '-o', 'size=16k', 'none')
  writeFileSync(join(folder, segmentName(1)), 'x'.repeat(4096))
  assert.throws(() => writeFileSync(join(folder, 'filler'), Buffer.alloc(64 * 1024)), { code: 'ENOSPC' })
  const before = openDescriptors()
  assert.throws(() => openConsoleWriter(folder, () => NOW), { code: 'ENOSPC' })
  assert.deepEqual(openDescriptors(), before)
})

test('lines are the same however the bytes are cut, and none is longer than 16 KiB', () => {
  const whole = Buffer.from(`a\r\n\n${'ü'.repeat(20_000)}\nlast\nrest`)
  const expected = ['a', '', 'ü'.repeat(CONSOLE_LINE_MAX_BYTES / 2), 'last', 'rest']
  for (const size of [1, 3, 1000, whole.length]) {
    const splitter = createLineSplitter()
    const lines: Buffer[] = []
    for (let at = 0; at < whole.length; at += size) lines.push(...splitter.push(whole.subarray(at, at + size)))
    lines.push(...splitter.end())
    assert.deepEqual(lines.map(String), expected)
  }
})

test('a pattern is found wherever it stands, through colours, and costs no more than the line', () => {
  const matches = (pattern: string, line: string) => createLineMatcher([pattern]).matches(Buffer.from(line))
  assert.ok(matches('Done (*)!', '[Server thread/INFO]: \u001b[32mDone\u001b[0m (4.2s)! For help'))
  assert.ok(matches('{player} joined the game', 'anna joined the game'))
  assert.ok(!matches('Done (*)!', 'done (4.2s)!'))
  assert.ok(!matches('a*b', 'b a'))
  assert.ok(matches('^[{time}] Saved$', '\u001b[1G  [12:00] Saved'))
  assert.ok(!matches('^[{time}] Saved$', '[12:00] Saved all'))
  assert.ok(!matches('^[{time}] Saved', '[12:00] <bob> ] Saved'))
  assert.ok(!matches('^Saved', 'not Saved') && !matches('Saved$', 'Saved not') && matches('Saved$', 'all Saved'))
  assert.ok(matches('*^a', 'x ^a') && matches('a$*', 'x a$ y'))
  assert.ok(!matches('^ab$', 'a') && !matches('^a*a$', 'a') && matches('^a*a$', 'aa'))
  assert.ok(!createLineMatcher([]).matches(Buffer.from('anything')))
  for (const pattern of ['^$', '^', '$', '^*$']) assert.ok(!matches(pattern, 'anything'))
  assert.ok(!createLineMatcher(['*']).matches(Buffer.from('anything')), 'what matches everything means nothing')
})
