// Deletions on a server that has no room for their records: always possible, and still bounded.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { RECORDS_BEYOND_QUOTA_BYTES } from '../../../contract/fixed-limits.ts'
import { until } from '../../http/agent.testing.ts'
import { writeContent } from '../content.ts'
import { bytes, request, serverId, startServer } from '../server.testing.ts'
import { planFreeing } from './trash-freeing.ts'

const BLOCK = 4096
const RECORD_BYTES = 2 * BLOCK
const ALLOWED = RECORDS_BEYOND_QUOTA_BYTES / RECORD_BYTES

async function deletions(t: TestContext, count: number, content: string | Buffer = '') {
  const names = Array.from({ length: count }, (_, index) => `f${index}`)
  const started = await startServer(t, Object.fromEntries(names.map((name) => [name, content])))
  const { agent } = started
  return {
    ...started,
    remove: (...files: string[]) => agent.remove(request({ root: '/', files })),
    /** The newest first. */
    trashed: async () => (await agent.listTrash({ serverId, limit: 1000 })).items.map(({ path }) => path.slice(1)),
    usedBytes: async () => (await agent.usage({ serverId })).usedBytes,
    names,
  }
}

for (const together of [1, 2])
  test(`deleting ${together} at a time on a full server takes no more than a mebibyte beyond its quota`, async (t) => {
    const { agent, names, remove, trashed, usedBytes } = await deletions(t, together * (ALLOWED + 20))
    await agent.setQuota({ serverId, quotaBytes: 0, maxEntries: null })
    for (let at = 0; at < names.length; at += together) await remove(...names.slice(at, at + together))
    const most = RECORDS_BEYOND_QUOTA_BYTES + 2 * RECORD_BYTES
    await until(async () => (await usedBytes()) <= most)
    const left = await trashed()
    assert.ok(left.length >= together * (ALLOWED - 1), `${left.length}`)
    assert.deepEqual(left.toSorted(), names.slice(-left.length).toSorted(), 'the newest are left')
  })

test('few deletions free nothing, however far a game has taken the server over its quota', async (t) => {
  const { agent, names, remove, trashed } = await deletions(t, 20, Buffer.alloc(10 * BLOCK))
  await agent.setQuota({ serverId, quotaBytes: BLOCK, maxEntries: null })
  for (const name of names) await remove(name)
  assert.equal((await trashed()).length, names.length)
})

test('many deletions free nothing while there is room', async (t) => {
  const { names, remove, trashed } = await deletions(t, ALLOWED + 10)
  for (const name of names) await remove(name)
  assert.equal((await trashed()).length, names.length)
})

test('what takes no space goes with its record, and only where that has to go', async (t) => {
  const { agent, server, remove, trashed, usedBytes } = await deletions(t, 3)
  await remove('f0', 'f1', 'f2')
  assert.equal(await planFreeing([server.trash], { bytes: RECORD_BYTES + 1, entries: 0 }), undefined)
  await agent.setQuota({ serverId, quotaBytes: await usedBytes(), maxEntries: null })
  await writeContent(server, '/new', bytes('x'))
  assert.deepEqual([await trashed(), await usedBytes()], [[], BLOCK])
})
