import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { openLocalStore } from './local.ts'
import { blobStoreContract } from './store.contract.ts'

const temporary = () => mkdtemp(join(tmpdir(), 'gamekeeper-blobs-'))

blobStoreContract('local disk', async () => {
  const dir = await temporary()
  return {
    store: await openLocalStore(dir, { clear: true }),
    reopen: () => openLocalStore(dir, { clear: true }),
    remove: () => rm(dir, { recursive: true }),
  }
})

it('gives the space of an unfinished blob back when the writer opens the store again', async () => {
  const dir = await temporary()
  const writer = await (await openLocalStore(dir, { clear: true })).create('packs/half')
  await writer.write(Buffer.alloc(1000))
  assert.equal((await readdir(join(dir, '.unfinished'))).length, 1)
  await openLocalStore(dir, { clear: false })
  assert.equal((await readdir(join(dir, '.unfinished'))).length, 1)
  await openLocalStore(dir, { clear: true })
  assert.equal((await readdir(join(dir, '.unfinished'))).length, 0)
  await writer.abort()
  await rm(dir, { recursive: true })
})
