import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Source, sourcesUnder } from './sources.ts'

const LINES_MAX = 400
// In parts, so that this file does not find itself.
const LEFT_OVER = /\b(?:TO(?:DO)|FIX(?:ME)|XX(?:X))\b/

function faultsIn(sources: Source[]): string[] {
  return sources.flatMap(({ path, text }) => [
    ...(text.split('\n').length - 1 > LINES_MAX
      ? [`${path} has more than ${LINES_MAX} lines: split it by concept`]
      : []),
    ...(LEFT_OVER.test(text) ? [`${path} has something left to do`] : []),
  ])
}

test('files are short and nothing is left to do', () => {
  assert.deepEqual(faultsIn(sourcesUnder('src', 'test', 'bench', 'scripts')), [])
})

test('a long file and a note to oneself would be found', () => {
  assert.equal(faultsIn([{ path: 'x.ts', text: 'x\n'.repeat(401) }]).length, 1)
  assert.equal(faultsIn([{ path: 'x.ts', text: `// TO${'DO'}: later` }]).length, 1)
  assert.deepEqual(faultsIn([{ path: 'x.ts', text: 'x\n'.repeat(400) }]), [])
})
