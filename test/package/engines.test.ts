// `npm ci` warns of every package that wants a newer Node than the one npm runs on. Ours starts on 20.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../architecture/sources.ts'

const OLDEST = 20

/** Of ranges as packages write them: `>=18`, `^20.19.0 || >=22.12.0`, `20 || 22`, `*`. */
const takesOldest = (range: string): boolean =>
  range.split('||').some((part) => {
    const [, operator = '', major = '0'] = /^\s*([<>=^~]*)\s*v?(\d+)?/.exec(part) ?? []
    return operator.startsWith('>') ? Number(major) <= OLDEST : ['0', String(OLDEST)].includes(major)
  })

test('npm ci and the package install on Node 20 without a warning about engines', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { engines?: { node?: string } }>
  }
  const tooNew = Object.entries(packages).filter(([, { engines }]) => !takesOldest(engines?.node ?? '*'))
  assert.deepEqual(tooNew, [])
})

test('a package that wants a newer Node would be found', () => {
  const ranges = ['>=22', '>= 22.12', '^22 || ^24', '>=18', '^20.19.0 || >=22.12.0', '18 || 20', '*', '>=0.10']
  assert.deepEqual(ranges.map(takesOldest), [false, false, false, true, true, true, true, true])
})
