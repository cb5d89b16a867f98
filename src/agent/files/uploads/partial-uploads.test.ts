import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { newId } from '../../../kit/ids.ts'
import { serverId, startServer } from '../server.testing.ts'
import { recordOf } from './partial-records.testing.ts'
import { createPartialUploads } from './partial-uploads.ts'

const MIB = 2 ** 20
const LATER = Date.now() + 1e9
const nobodyIsBusy = () => false

/** Three uploads, of which nothing has arrived; the first of them as a sweep sees them is damaged. */
async function begun(t: TestContext, damage: (record: string) => void) {
  const { server, agent, folders } = await startServer(t)
  const uploads = createPartialUploads(server, async () => {})
  const ids = Array.from({ length: 3 }, () => newId('upl'))
  for (const id of ids) await uploads.create(recordOf(id, { sizeBytes: MIB }), MIB)
  const name = readdirSync(folders.staging).find((found) => found.endsWith('.json')) ?? ''
  damage(join(folders.staging, name))
  const reserved = async () => (await agent.usage({ serverId })).reservedBytes
  const others = ids.filter((id) => !name.includes(id))
  return { uploads, others, reserved, staged: () => readdirSync(folders.staging) }
}

test('an upload whose record was damaged goes in its time, with the space that was held for it', async (t) => {
  for (const damage of ['', '[]', '{"version":1}']) {
    const { uploads, reserved, staged } = await begun(t, (record) => writeFileSync(record, damage))
    assert.equal(await reserved(), 3 * MIB)
    await uploads.expire(0, nobodyIsBusy)
    assert.equal(await reserved(), 3 * MIB)
    await uploads.expire(LATER, nobodyIsBusy)
    assert.deepEqual([await reserved(), staged()], [0, []])
  }
})

test('what cannot be removed keeps no other upload from being taken up, or from going in its time', async (t) => {
  const { uploads, others, reserved, staged } = await begun(t, (record) => {
    rmSync(record)
    mkdirSync(record)
  })
  await assert.rejects(uploads.recover(), { code: 'EISDIR' })
  assert.deepEqual(
    uploads
      .list()
      .map(({ record }) => record.id)
      .sort(),
    others.sort(),
  )
  await assert.rejects(uploads.expire(LATER, nobodyIsBusy), { code: 'EISDIR' })
  assert.deepEqual(uploads.list(), [])
  assert.ok(staged().every((name) => others.every((id) => !name.includes(id))))
  assert.ok((await reserved()) <= MIB)
})
