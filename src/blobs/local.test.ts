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

it('reads at once what it reads otherwise, until it is closed, and says what is missing', async () => {
  const dir = await temporary()
  const store = await openLocalStore(dir, { clear: true })
  const bytes = Buffer.from('0123456789')
  await store.put('packs/ab/one', bytes)
  const reader = store.openNow?.('packs/ab/one')
  assert.ok(reader)
  await store.delete('packs/ab/one')
  const into = Buffer.alloc(8)
  for (const [offset, length] of [
    [0, 10],
    [3, 4],
    [8, 4],
    [12, 1],
  ] as const) {
    const wanted = bytes.subarray(offset, offset + length)
    assert.deepEqual(Buffer.from(reader.get({ offset, length })), wanted)
    assert.deepEqual(Buffer.from(reader.get({ offset, length }, into)), wanted)
  }
  assert.equal(reader.get({ offset: 3, length: 4 }, into).buffer, into.buffer)
  reader[Symbol.dispose]()
  assert.throws(() => reader.get({ offset: 0, length: 1 }), /after it was closed/)
  assert.throws(() => store.openNow?.('packs/ab/one'), { code: 'blob_missing' })
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
