// What a document promises has a test named after the sentence: docs/promises.md pairs them, and this reads both sides.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from './sources.ts'

interface Promised {
  sentence: string
  document: string
  testFile: string
}

/** Line breaks, list indents, backticks and bold differ between a page and a title; words do not. */
const words = (text: string) =>
  text.replaceAll('`', '').replaceAll('**', '').replaceAll("\\'", "'").replace(/\s+/g, ' ').trim()

function readPromises(markdown: string): Promised[] {
  return markdown.split(/^## /m).flatMap((section) => {
    const document = /^`([^`]+)`/.exec(section)?.[1]
    if (document === undefined) return []
    return [...section.matchAll(/^\| (.+?) +\| `([^`]+)` +\|$/gm)].map(([, sentence = '', testFile = '']) => ({
      sentence: words(sentence),
      document,
      testFile,
    }))
  })
}

/** Titles of tests and suites; a title that is computed cannot be named after a sentence. */
function titlesIn(source: string): string[] {
  const call = /\b(?:test|it|describe|onBothEngines)\(\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`$]*)`)/g
  return [...source.matchAll(call)].map(([, single, double, template]) => words(single ?? double ?? template ?? ''))
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const promises = readPromises(read('docs/promises.md'))

describe('promises', () => {
  for (const { sentence, document, testFile } of promises) {
    it(`${document}: ${sentence}`, () => {
      assert.ok(words(read(document)).includes(sentence), `${document} no longer says so`)
      assert.ok(existsSync(join(ROOT, testFile)), `${testFile} is gone`)
      assert.ok(titlesIn(read(testFile)).includes(sentence), `${testFile} has no test of that name`)
    })
  }

  it('has a test for every invariant in ARCHITECTURE.md', () => {
    const [, section = ''] = read('ARCHITECTURE.md').split(/^## Invariants$/m)
    const [invariants = ''] = section.split(/^## /m)
    const sentences = invariants.split(/^- /m).slice(1).map(words)
    assert.ok(sentences.length > 0)
    const known = promises.filter(({ document }) => document === 'ARCHITECTURE.md').map(({ sentence }) => sentence)
    for (const sentence of sentences)
      assert.ok(
        known.some((promise) => sentence.startsWith(promise)),
        `docs/promises.md does not name the invariant: ${sentence}`,
      )
  })

  it('would notice a sentence or a test that is missing', () => {
    const page = '## `docs/a.md`\n\n| promise | test |\n| --- | --- |\n| It `never` ends. | `test/a.test.ts` |\n'
    assert.deepEqual(readPromises(page), [
      { sentence: 'It never ends.', document: 'docs/a.md', testFile: 'test/a.test.ts' },
    ])
    assert.deepEqual(titlesIn("it('It never\\'s', () => {})\ntest(\n  'Two.',\n)"), ["It never's", 'Two.'])
  })
})
