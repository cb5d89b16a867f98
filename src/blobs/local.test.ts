import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
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

it('removes the directory of the last blob in it, also one that a killed delete has left', async () => {
  const dir = await temporary()
  const store = await openLocalStore(dir, { clear: true })
  await store.put('manifests/srv_a/1', Buffer.from('one'))
  await store.put('manifests/srv_a/2', Buffer.from('two'))
  await store.delete('manifests/srv_a/1')
  assert.deepEqual(await readdir(join(dir, 'manifests')), ['srv_a'])
  await store.delete('manifests/srv_a/2')
  assert.deepEqual(await readdir(join(dir, 'manifests')), [])
  await mkdir(join(dir, 'manifests/srv_a'))
  await store.delete('manifests/srv_a/2')
  assert.deepEqual(await readdir(join(dir, 'manifests')), [])
  await rm(dir, { recursive: true })
})

it('keeps a blob that is put while the last one beside it is deleted', async () => {
  const dir = await temporary()
  const store = await openLocalStore(dir, { clear: true })
  const bytes = Buffer.from('kept')
  for (let round = 0; round < 20; round++) {
    await store.put('manifests/srv_a/old', bytes)
    await Promise.all([store.delete('manifests/srv_a/old'), store.put('manifests/srv_a/new', bytes)])
    assert.deepEqual(Buffer.from(await store.get('manifests/srv_a/new')), bytes)
    await store.put('manifests/srv_a/other', bytes)
    await Promise.all(['new', 'other', 'new'].map((name) => store.delete(`manifests/srv_a/${name}`)))
    assert.deepEqual(await readdir(join(dir, 'manifests')), [])
  }
  await rm(dir, { recursive: true })
})
