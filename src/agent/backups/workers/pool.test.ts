import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { it } from 'node:test'
import { temporaryDirectory } from '../../../../test/support/daemons.ts'
import { createPool } from './pool.ts'

const threadCount = () => readdirSync('/proc/self/task').length

it('starts as many threads as it is asked for before there is work, each once, and no more than it may have', {
  skip: process.platform !== 'linux',
}, async () => {
  const store = temporaryDirectory('pool')
  const printKey = Buffer.alloc(16)
  const pool = createPool(
    { blobs: { kind: 'local', dir: store.path }, key: null, blockHash: 'sha-256', printKey, nice: 0 },
    3,
  )
  try {
    const before = threadCount()
    pool.warm(2)
    const two = threadCount()
    assert.ok(two >= before + 2)
    pool.of('srv_1').warm(2)
    assert.equal(threadCount(), two)
    pool.warm(100)
    const three = threadCount()
    assert.ok(three > two && three < before + 100)
  } finally {
    await pool.close()
    store.remove()
  }
})
