// What programs switch on is documented, and what is documented exists.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { EVENT_NAMES } from '../../src/contract/activity.ts'
import { ERRORS } from '../../src/contract/errors.ts'
import { SCOPES } from '../../src/contract/scopes.ts'
import { readConfig } from '../../src/control/config.ts'
import { ROOT, sourcesUnder } from './sources.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** The first cells of the table under a heading, without their backticks. */
function firstCells(markdown: string, heading: string): string[] {
  const [, section = ''] = markdown.split(new RegExp(`^## ${heading}$`, 'm'))
  const [until = ''] = section.split(/^## /m)
  return [...until.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, cell]) => cell ?? '')
}

function statuses(markdown: string): Record<string, number> {
  const rows = [...markdown.matchAll(/^\| `(\w+)` +\| (\d{3}) +\|/gm)]
  return Object.fromEntries(rows.map(([, code, status]) => [code, Number(status)]))
}

test('every error code is documented with its status, and no other', () => {
  const expected = Object.fromEntries(Object.entries(ERRORS).map(([code, { status }]) => [code, status]))
  assert.deepEqual(statuses(read('docs/api.md')), expected)
})

test('every event is documented, and no other', () => {
  assert.deepEqual(firstCells(read('docs/api.md'), 'Events').toSorted(), [...EVENT_NAMES].sort())
})

test('every scope is documented, and no other', () => {
  assert.deepEqual(firstCells(read('docs/api.md'), 'Scopes').toSorted(), [...SCOPES].sort())
})

test('every setting is documented, and no other', () => {
  const source = sourcesUnder('src/control').find(({ path }) => path === 'src/control/config.ts')?.text ?? ''
  const names = [...source.matchAll(/setting\('([A-Z_]+)'/g)].map(([, name]) => `GAMEKEEPER_${name}`)
  assert.ok(names.length >= Object.keys(readConfig({})).length)
  assert.deepEqual(firstCells(read('docs/operating.md'), 'Settings').toSorted(), names.toSorted())
})

test('every test that SECURITY.md names is there, and every hostile test is named', () => {
  const named = [...read('SECURITY.md').matchAll(/`((?:src|test)\/[^`]+\.test\.ts)`/g)].map(([, path]) => path ?? '')
  assert.ok(named.length > 20)
  const present = sourcesUnder('src', 'test').map(({ path }) => path)
  assert.deepEqual(
    named.filter((path) => !present.includes(path)),
    [],
  )
  const hostile = present.filter((path) => /^test\/hostile\/[^/]+\.test\.ts$/.test(path))
  assert.deepEqual(
    hostile.filter((path) => !named.includes(path)),
    [],
  )
})

test('a code that is missing, wrong or unknown would be found', () => {
  assert.deepEqual(statuses('| `a_b` | 404 | x |\n| `c` | no | y |'), { a_b: 404 })
  assert.deepEqual(firstCells('## Events\n| `a.b` | x |\n## More\n| `c.d` | y |', 'Events'), ['a.b'])
})
