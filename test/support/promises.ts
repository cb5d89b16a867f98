// Tests named after the sentences of a document, and the check that each sentence has one.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

export const API_DOCS = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')

/** For the list under a heading of docs/api.md. */
export function promisesUnder(heading: string) {
  const [section = ''] = API_DOCS.split(`\n## ${heading}\n`)[1]?.split('\n## ') ?? []
  const written = [...section.matchAll(/^- (.+)$/gm)].map(([, sentence]) => sentence ?? '')
  const kept = new Set<string>()
  return {
    promise(sentence: string, work: () => Promise<void>): void {
      kept.add(sentence)
      test(sentence, work)
    },
    /** To be called after the last promise. */
    checkList(): void {
      test(`every sentence under ${heading} has its test, and every test its sentence`, () => {
        assert.ok(written.length > 0)
        assert.deepEqual([...kept].sort(), written.toSorted())
      })
    },
  }
}
