import assert from 'node:assert/strict'
import { it } from 'node:test'
import { run } from '../bench/backups-scale.ts'

it('the benchmark of backups at scale runs, in its short form', async () => {
  const shape = { manyFiles: 300, chainFiles: 300, chain: 6, changed: 10, deleted: 3, peerChain: 0, settleMs: 0 }
  // Whether the bars are held says nothing at this size; that every step was measured does.
  assert.equal(typeof (await run(shape)), 'boolean')
})
