// Patterns of a `.gitignore` and paths that they are tried on: the patterns, a zero, then a path a line; a slash at its end
// makes it a directory. What an input can cost grows with its patterns times its paths, so both are kept short: what takes
// more than that shows all the same, and many more inputs are tried.
import assert from 'node:assert/strict'
import { createIgnoreRules, type IgnoreRules } from '../../../src/agent/backups/tree/ignore-rules.ts'
import type { Random } from '../../faults/history/random.ts'

const PATTERNS_MAX_BYTES = 4096
const PATHS_MAX = 24
const PATHS_LENGTH_MAX = 1024
const NAME_LENGTH_MAX = 255

export const covers = ['/src/agent/backups/']
export const maxCpuMs = 250

export const dictionary = [
  ...['*', '**', '/**/', '**/', '/**', '?', '!', '#', '\\', '\\ ', '\\\\', '/', '\n', '\r\n', '\0', ' ', '\t'],
  ...['[a-z]', '[!a]', '[^a]', '[]a]', '[a-]', '[', ']', '[[:alpha:]]', '[[:digit:]]', '[[:what:]]', '[\\]]'],
  ...['\xc3\x84', '\xc3\xa4', '\xf0\x9f\x90\xb4', '\xef\xbb\xbf', '\xe2\x84\xaa', '\xc4\xb0', '\xc3\x9f'],
  ...['a/', 'a/a/a/a/', '**/a/**/a/**/a/', '*a*a*a*a*b', 'a'.repeat(64), '?'.repeat(64)],
]

const sample = (patterns: string[], paths: string[]) => Buffer.from(`${patterns.join('\n')}\0${paths.join('\n')}`)

/** What git's manual says of each form, and patterns that others' matchers never finish. */
export const seeds = () => [
  sample(['hello.*'], ['/hello.txt', '/a/hello.java', '/hello']),
  sample(['/hello.*'], ['/hello.txt', '/a/hello.c']),
  sample(['foo/'], ['/foo/', '/a/foo/', '/a/foo', '/foo/bar']),
  sample(['doc/frotz', '/doc/frotz/'], ['/doc/frotz/', '/a/doc/frotz/', '/doc/frotz']),
  sample(['foo/*'], ['/foo/test.json', '/foo/bar/', '/foo/bar/hello.c']),
  sample(['**/foo', '**/foo/bar'], ['/foo', '/a/b/foo/', '/a/foo/bar', '/foo/x/bar']),
  sample(['abc/**', 'a/**/b'], ['/abc/', '/abc/x/y', '/a/b', '/a/x/b', '/a/x/y/b']),
  sample(['/*', '!/foo', '/foo/*', '!/foo/bar'], ['/foo/', '/foo/bar/', '/foo/bar/x', '/foo/baz', '/other']),
  sample(['*.[oa]', '!lib.a', '*.html', '!foo.html'], ['/x.o', '/lib.a', '/s/lib.a', '/foo.html', '/X.HTML']),
  sample(['# a comment', '\\#a', '\\!b', 'c\\ ', 'd  ', 'e\\', '', ' '], ['/#a', '/!b', '/c ', '/d', '/e\\']),
  sample(['[]-a]', '[!a-c]x', '[[:upper:]0-9_]?', '[z-a]', '[\\]]'], ['/]', '/dx', '/Q1', '/-', '/a']),
  sample(['ÄRGER', '?', '[à-þ]*'], ['/ärger', '/🐴', '/ÀB', '/ß', '/K']),
  sample([`${'**/a/'.repeat(12)}b`], [`/${'a/'.repeat(200)}`, `/${'a/'.repeat(200)}b`]),
  sample([`${'*a'.repeat(60)}*b`, `*${'?'.repeat(90)}[b]*c`], [`/${'a'.repeat(255)}`, `/${'a'.repeat(254)}b`]),
  sample(Array(10).fill(`*${'a'.repeat(127)}b*`), [`/${'a'.repeat(255)}`]),
  sample(Array(50).fill('*[ÿ]*'), [`/${'š'.repeat(127)}`]),
]

/** Whole patterns and paths left out, doubled, moved, negated and nested. */
export function mutate(input: Buffer, random: Random): Buffer {
  const halves = input.toString('latin1').split('\0')
  const at = random.int(Math.min(halves.length, 2))
  const lines = (halves[at] ?? '').split('\n')
  const line = random.int(lines.length)
  const taken = lines[line] ?? ''
  const kind = random.int(4)
  if (kind === 0) lines.splice(line, 1)
  if (kind === 1) lines.splice(random.int(lines.length + 1), 0, taken)
  if (kind === 2) lines[line] = `${taken}/${random.pick(lines)}`
  if (kind === 3) lines[line] = taken.startsWith('!') ? taken.slice(1) : `!${taken}`
  halves[at] = lines.join('\n')
  return Buffer.from(halves.join('\0'), 'latin1')
}

interface Asked {
  path: string
  isDirectory: boolean
}

export function run(input: Buffer): void {
  const end = input.indexOf(0)
  const patterns = input.subarray(0, end < 0 ? input.length : end)
  const text = patterns.subarray(0, PATTERNS_MAX_BYTES).toString()
  const asked = parsePaths(end < 0 ? '' : input.subarray(end + 1).toString())
  const fromTop = asked.map((one) => isIgnored(createIgnoreRules(text), one))
  const inOrder = createIgnoreRules(text)
  assert.deepEqual(
    asked.map((one) => isIgnored(inOrder, one)),
    fromTop,
    'the order of a walk changes what is ignored',
  )
  assert.deepEqual(
    asked.toReversed().map((one) => isIgnored(inOrder, one)),
    fromTop.toReversed(),
    'what was asked before changes what is ignored',
  )
  for (const [index, { path }] of asked.entries()) {
    const parent = path.slice(0, path.lastIndexOf('/'))
    if (parent === '' || !inOrder.isIgnored(parent, true)) continue
    assert.ok(fromTop[index], `${JSON.stringify(path)} is in an ignored directory and is not ignored`)
  }
}

const isIgnored = (rules: IgnoreRules, { path, isDirectory }: Asked) => rules.isIgnored(path, isDirectory)

/** As a walk would name them: from the top, of names that a file system can hold. */
function parsePaths(text: string): Asked[] {
  const asked: Asked[] = []
  let length = 0
  for (const line of text.split('\n')) {
    const names = line.split('/').filter((name) => name !== '' && name !== '.' && name !== '..')
    const path = `/${names.map((name) => name.slice(0, NAME_LENGTH_MAX)).join('/')}`.replaceAll('\0', '')
    length += path.length
    if (asked.length === PATHS_MAX || length > PATHS_LENGTH_MAX) return asked
    if (path !== '/') asked.push({ path, isDirectory: line.endsWith('/') })
  }
  return asked
}
