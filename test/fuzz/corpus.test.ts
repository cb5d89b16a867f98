// Every input that a fuzzer has kept, and every seed, once: what was found stays found.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replay } from './runner.ts'
import { loadTarget, readCorpus, targetNames } from './target.ts'

for (const name of targetNames()) {
  test(`${name}: nothing of the corpus does any harm`, async (t) => {
    const seeds = (await loadTarget(name)).seeds()
    const corpus = readCorpus(name)
    t.diagnostic(`${seeds.length} seeds, ${corpus.length} kept`)
    const found = await replay(name, [...seeds, ...corpus.map(({ input }) => input)])
    assert.deepEqual(
      found.map(({ input, fault }) => `${fault}: ${input.subarray(0, 200).toString('latin1')}`),
      [],
    )
  })
}
