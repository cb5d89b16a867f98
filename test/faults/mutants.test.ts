// The patches that `npm run faults -- history-mutants` applies take out fixes of today's code: one that no longer applies
// shows nothing.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { patchOf, readMutants } from './history/mutants.ts'
import { THEMES } from './history/themes/index.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const mutants = readMutants()

for (const { name, themes, fault } of mutants) {
  test(`the mutant ${name} still takes its fix out`, () => {
    execFileSync('git', ['apply', '--check', patchOf(name)], { cwd: ROOT, stdio: 'pipe' })
    assert.deepEqual(
      themes.filter((theme) => !(theme in THEMES)),
      [],
    )
    assert.match(fault, /^\d+$/)
  })
}

test('every fault from 1 to 12, and 16, has a mutant', () => {
  const faults = Array.from({ length: 12 }, (_, index) => String(index + 1))
  const missing = [...faults, '16'].filter((fault) => !mutants.some((mutant) => mutant.fault === fault))
  assert.deepEqual(missing, [])
})
