// Blocks that manifests name and the store does not have, found by the names and sizes of packs.
import assert from 'node:assert/strict'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { blobsIn } from '../../../blobs/store.testing.ts'
import type { StoredBackup } from '../../../contract/agent/agent-backups.ts'
import { startAgent, temporaryFolder } from '../backups.testing.ts'
import { mirror, openBucket } from '../offsite.testing.ts'
import { findStore, listStore } from '../store/recovered-store.ts'

const SERVER = 'srv_a'
const SETTLED_MS = 1100

/** Two backups that share a part, the second with one file more than the first, whose blocks are in a pack of their own. */
async function scene(t: TestContext) {
  const folder = temporaryFolder(t)
  const bucket = openBucket(temporaryFolder(t))
  const agent = await startAgent(folder, { offsite: bucket.open })
  const root = agent.filesOf(SERVER)
  for (let index = 0; index < 60; index++) writeFileSync(join(root, `file ${100 + index}`), `content ${index}`)
  // A file that has just changed is described anew by the next backup.
  await sleep(SETTLED_MS)
  const first = (await agent.create(SERVER)).backupId
  const [older = ''] = blobsIn(agent.storeDir, 'packs')
  writeFileSync(join(root, 'file 110'), 'changed')
  const second = (await agent.create(SERVER)).backupId
  const newer = blobsIn(agent.storeDir, 'packs').find((path) => path !== older) ?? ''
  mirror(agent, bucket)
  await agent.stop()
  return { folder, bucket, storeDir: agent.storeDir, first, second, older, newer }
}

const damageIn = (listed: StoredBackup[]) =>
  Object.fromEntries(listed.map(({ backupId, damage }) => [backupId, damage]))

async function listedIn(folder: string, offsite: Parameters<typeof startAgent>[1] = {}) {
  const agent = await startAgent(folder, offsite)
  const listed = await agent.backups.list({ serverId: null, isThorough: true })
  await agent.stop()
  return listed
}

it('what a chunk lacks that several manifests share is damage of each of them', async (t) => {
  const { folder, storeDir, first, second, older } = await scene(t)
  const bytes = readFileSync(older)
  const found = async () => listStore(await findStore(storeDir, null))
  assert.deepEqual(damageIn(await found()), { [first]: null, [second]: null })
  truncateSync(older, bytes.length - 1)
  const where = `the first in ${older.slice(storeDir.length + 1)}, which has ${bytes.length - 1} bytes instead of ${bytes.length}`
  const expected = { [first]: `missing blocks: 60, ${where}`, [second]: `missing blocks: 59, ${where}` }
  assert.deepEqual(damageIn(await found()), expected)
  assert.deepEqual(damageIn(await listedIn(folder)), expected)
  rmSync(older)
  for (const listed of [await found(), await listedIn(folder)])
    assert.deepEqual(
      listed.map(({ backup, areBlocksMissing }) => [backup !== null, areBlocksMissing]),
      [
        [true, true],
        [true, true],
      ],
    )
})

it('names only backups that need the pack', async (t) => {
  const { folder, storeDir, first, second, newer } = await scene(t)
  rmSync(newer)
  const damage = damageIn(await listStore(await findStore(storeDir, null)))
  assert.deepEqual(damage, {
    [first]: null,
    [second]: `missing blocks: 1, the first in ${newer.slice(storeDir.length + 1)}, which is not there`,
  })
  assert.deepEqual(damageIn(await listedIn(folder)), {
    [first]: null,
    [second]: 'missing blocks: 1, the first in no pack',
  })
})

it('what the off-site store has is not missing, and what it may have while it cannot be reached is not said to be', async (t) => {
  const { folder, bucket, first, second, older } = await scene(t)
  rmSync(older)
  const sound = { [first]: null, [second]: null }
  bucket.breakAfter(0)
  assert.deepEqual(damageIn(await listedIn(folder, { offsite: bucket.open })), sound)
  bucket.mend()
  assert.deepEqual(damageIn(await listedIn(folder, { offsite: bucket.open })), sound)
  // From now on a note says that it is there, which a store that nobody has opened believes.
  assert.deepEqual(damageIn(await listStore(await findStore(join(folder, 'backups'), null))), sound)
})

it('a store that has lost its indexes has its blocks once it is opened', async (t) => {
  const { folder, storeDir, first, second } = await scene(t)
  rmSync(join(storeDir, 'index'), { recursive: true })
  const damage = damageIn(await listStore(await findStore(storeDir, null)))
  assert.match(damage[first] ?? '', /^missing blocks: 60, the first in no index, nor are packs: 2$/)
  assert.deepEqual(damageIn(await listedIn(folder)), { [first]: null, [second]: null })
})
