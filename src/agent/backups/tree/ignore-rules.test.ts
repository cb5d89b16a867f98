import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { temporaryFolder } from '../backups.testing.ts'
import { createIgnoreRules } from './ignore-rules.ts'

const RUNS = Number(process.env.GAMEKEEPER_TEST_RUNS ?? 150)
const FILES = ['c', 'ab.c', '#a', '!a', 'c d', 'x ', '[', ']', 'a-b', '1', 'a\\']
const FOLDERS = ['a', 'b', 'ab']
const DEPTH = 3

/** Every path of the tree that patterns are tried on; directories end with a slash. */
function pathsBelow(folder: string, depth: number): string[] {
  const files = (depth === DEPTH ? FILES.slice(0, 2) : FILES).map((name) => `${folder}/${name}`)
  if (depth === DEPTH) return files
  return [...files, ...FOLDERS.flatMap((name) => [`${folder}/${name}/`, ...pathsBelow(`${folder}/${name}`, depth + 1)])]
}

function ignoredByUs(patterns: string, paths: string[]): string[] {
  const rules = createIgnoreRules(patterns)
  return paths.filter((path) => rules.isIgnored(path.replace(/\/$/, ''), path.endsWith('/')))
}

function prepareGit(t: TestContext, paths: string[]) {
  const root = temporaryFolder(t)
  const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', HOME: root }
  const git = (args: string[], input = '') =>
    execFileSync('git', ['-C', root, ...args], { input, env, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] })
  git(['init', '-q'])
  // As ours: `[/-[]` holds the capital letters, and so the small ones too.
  git(['config', 'core.ignorecase', 'true'])
  for (const path of paths) {
    if (path.endsWith('/')) mkdirSync(join(root, path))
    else writeFileSync(join(root, path), '')
  }
  const input = paths.map((path) => `.${path.replace(/\/$/, '')}\0`).join('')
  return (patterns: string): string[] => {
    writeFileSync(join(root, '.git/info/exclude'), patterns)
    let output = ''
    try {
      output = git(['check-ignore', '--no-index', '--stdin', '-z'], input)
    } catch (error) {
      // 1: nothing is ignored.
      if ((error as { status?: number }).status !== 1) throw error
    }
    const ignored = new Set(output.split('\0').map((path) => path.slice(1)))
    return paths.filter((path) => ignored.has(path.replace(/\/$/, '')))
  }
}

const piece = fc.constantFrom(
  ...[
    'a',
    'b',
    'ab',
    'c',
    '.',
    '1',
    'ä',
    '-',
    '*',
    '?',
    '[ab]',
    '[!a]',
    '[^b]',
    '[a-c]',
    '[]a]',
    '[!]]',
    '[a-]',
    '[c-a]',
  ],
  ...[
    '[[:alpha:]]',
    '[[:digit:]b]',
    '[[:punct:]]',
    '[[:what:]]',
    '[[:a]',
    '[\\]]',
    '[a',
    '[',
    ']',
    '\\a',
    '\\*',
    '\\[',
    '\\',
  ],
  ...['#', '!', ' ', '\\ ', 'c d', '[a/b]', '\\/'],
)
const name = fc.oneof(
  { weight: 3, arbitrary: fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join('')) },
  { weight: 2, arbitrary: fc.constantFrom('a', 'b', 'ab', 'c') },
  { weight: 1, arbitrary: fc.constantFrom('*', '**', '***', '') },
)
/** Git itself takes `**` after plain text for more than one `*`, though it says otherwise: see below. */
const hasLooseGlobstar = (line: string) => /[^/!*]\*\*|\*\*[^/*]/.test(line)
const line = fc
  .record({
    sign: fc.constantFrom('', '', '', '!', '#', '\\#', '\\!'),
    start: fc.constantFrom('', '', '/', '**/'),
    names: fc.array(name, { minLength: 1, maxLength: 4 }),
    end: fc.constantFrom('', '', '/', '/**', ' ', '  ', '\\ ', '\r'),
  })
  .map(({ sign, start, names, end }) => `${sign}${start}${names.join('/')}${end}`)
  .filter((text) => !hasLooseGlobstar(text))

describe('ignore rules', () => {
  it('takes patterns for what git takes them for', (t) => {
    const paths = pathsBelow('', 0)
    const ignoredByGit = prepareGit(t, paths)
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), (lines) => {
        const patterns = lines.join('\n')
        assert.deepEqual(ignoredByUs(patterns, paths), ignoredByGit(patterns))
      }),
      { numRuns: RUNS },
    )
  })

  it('takes `**` beside other characters for one `*`, as the manual of git says', () => {
    const paths = ['/foo/bar', '/fooa/bar', '/fooa/b/bar', '/a/xb', '/a/x/b']
    assert.deepEqual(ignoredByUs('foo**/bar', paths), ['/foo/bar', '/fooa/bar'])
    assert.deepEqual(ignoredByUs('/a/**b', paths), ['/a/xb'])
  })

  it('makes no difference between upper and lower case, and counts characters, not bytes', () => {
    assert.deepEqual(ignoredByUs('*.LOG', ['/a.log', '/A.Log', '/b.lo']), ['/a.log', '/A.Log'])
    assert.deepEqual(ignoredByUs('[a-c]x', ['/Bx', '/dx']), ['/Bx'])
    assert.deepEqual(ignoredByUs('[[:upper:]]1', ['/b1', '/11']), ['/b1'])
    assert.deepEqual(ignoredByUs('ÄÖ', ['/äö', '/ao']), ['/äö'])
    assert.deepEqual(ignoredByUs('[à-ý]?[!a]', ['/É😀b', '/éaa', '/Éa']), ['/É😀b'])
    assert.deepEqual(ignoredByUs('*[é]?', ['/aÉ😀', '/aÉ😀b']), ['/aÉ😀'])
  })

  it('reads lines that end with a carriage return, and a byte order mark', () => {
    assert.deepEqual(ignoredByUs('\ufeffa\r\n\r\n!b\r\n# c\r\nd \r\n', ['/a', '/b', '/d', '/# c']), ['/a', '/d'])
  })

  it('answers alike whatever was asked before', () => {
    const paths = pathsBelow('', 0)
    fc.assert(
      fc.property(fc.array(line, { maxLength: 4 }), fc.shuffledSubarray(paths, { maxLength: 20 }), (lines, asked) => {
        const patterns = lines.join('\n')
        const ignored = new Set(ignoredByUs(patterns, paths))
        const expected = asked.filter((path) => ignored.has(path))
        assert.deepEqual(ignoredByUs(patterns, asked), expected)
      }),
    )
  })

  for (const [what, patterns] of Object.entries({
    'twelve directories anywhere': `${'**/a/'.repeat(12)}b`,
    'thousands of directories anywhere': `${'**/a/'.repeat(6500)}b`,
    'thousands of stars': `${'*a'.repeat(16_000)}b`,
    'hundreds of long searches': Array.from({ length: 80 }, () => `*${'[ab]'.repeat(100)}[cd]*`).join('\n'),
    'thousands of short searches': '*[b]*\n'.repeat(5400),
  }))
    it(`answers over 200 nested directories: ${what}`, () => {
      const nested = Array.from({ length: 200 }, (_, depth) => `${'/a'.repeat(depth)}/${'a'.repeat(250)}`)
      assert.deepEqual(ignoredByUs(patterns, nested), [])
    })
})
