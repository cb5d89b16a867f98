import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { visitNeeded } from '../format/block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from '../format/format.ts'
import { PATCHED_BLOCK } from '../workers/worker-jobs.ts'
import { joinedRead } from './joined-reads.ts'

it('a file that was cut to one block while it was read may have that one patched', () => {
  const [ids, base] = [randomBytes(2 * ID_BYTES), randomBytes(ID_BYTES)]
  const patch = ids.subarray(ID_BYTES)
  const read = { error: null, isUnopened: false, changed: false, length: BLOCK_BYTES, prints: null }
  const blocks = { ids, flags: Uint8Array.of(PATCHED_BLOCK), sectors: Uint16Array.of(1), firstBlock: 0, blockCount: 1 }
  const patches = new Map([[0, { sectors: 1, base, patch }]])
  const { content, isPatched } = joinedRead({ ...read, ...blocks, patches })
  assert.ok(isPatched)
  const needed: Buffer[] = []
  visitNeeded(content, (idAt) => void needed.push(Buffer.from(content.subarray(idAt, idAt + ID_BYTES))))
  assert.deepEqual(needed, [base, patch])
})
