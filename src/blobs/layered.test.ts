import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { asCopy, openLayeredStore } from './layered.ts'
import { openLocalStore } from './local.ts'
import { blobStoreContract } from './store.contract.ts'
import type { BlobStore } from './store.ts'

async function twoStores() {
  const folder = await mkdtemp(join(tmpdir(), 'gamekeeper-layered-'))
  const local = await openLocalStore(join(folder, 'local'), { clear: true })
  const copy = await openLocalStore(join(folder, 'copy'), { clear: true })
  const reopen = async () => {
    const again = await openLocalStore(join(folder, 'local'), { clear: true })
    return await openLayeredStore(again, asCopy(copy))
  }
  const remove = () => rm(folder, { recursive: true })
  return { folder, local, copy, store: await openLayeredStore(local, asCopy(copy)), reopen, remove }
}

const broken: BlobStore = new Proxy({} as BlobStore, {
  get: () => () => Promise.reject(new Error('no route to host')),
})

async function names(store: BlobStore, prefix: string): Promise<string[]> {
  const found: string[] = []
  for await (const { name } of store.list(prefix)) found.push(name)
  return found.sort()
}

blobStoreContract('a disk and a copy', twoStores)

it('reads a blob that has left from the copy, also when opened again, and lists it', async () => {
  const { local, copy, store, reopen, remove } = await twoStores()
  const bytes = Buffer.from('what is in the pack')
  for (const name of ['packs/ab/one', 'packs/ab/two']) {
    await store.put(name, bytes)
    await copy.put(name, bytes)
  }
  await store.leave('packs/ab/one', bytes.length)
  assert.deepEqual(await names(local, 'packs/'), ['packs/ab/two'])
  for (const opened of [store, await reopen()]) {
    assert.deepEqual(await names(opened, ''), ['packs/ab/one', 'packs/ab/two'])
    assert.deepEqual(await names(opened, 'packs/ab/o'), ['packs/ab/one'])
    assert.equal(opened.isAway('packs/ab/one'), true)
    assert.equal(opened.isAway('packs/ab/two'), false)
    assert.equal((await opened.stat('packs/ab/one')).sizeBytes, bytes.length)
    assert.equal(Buffer.from(await opened.get('packs/ab/one', { offset: 5, length: 2 })).toString(), 'is')
    const reader = await opened.open('packs/ab/one')
    assert.equal(Buffer.from(await reader.get({ offset: 0, length: 4 })).toString(), 'what')
    await reader.close()
  }
  await remove()
})

it('has a blob on the disk after a leaving that was cut short, and one that is written again', async () => {
  const { local, store, reopen, remove } = await twoStores()
  await store.put('packs/ab/one', Buffer.from('here'))
  // Noted, and killed before it was taken off the disk.
  await store.note('packs/ab/one', 4)
  const again = await reopen()
  assert.equal(again.isAway('packs/ab/one'), false)
  assert.deepEqual(await names(local, 'away/'), [])
  await again.leave('packs/ab/one', 4)
  await again.put('packs/ab/one', Buffer.from('back'))
  assert.deepEqual(await names(local, 'away/'), [])
  assert.equal(Buffer.from(await again.get('packs/ab/one')).toString(), 'back')
  await again.leave('packs/ab/one', 4)
  await again.delete('packs/ab/one')
  assert.deepEqual(await names(await reopen(), ''), [])
  await remove()
})

it('asks the copy for nothing that no note names, and says so where it cannot be reached', async () => {
  const { folder, local, remove } = await twoStores()
  const store = await openLayeredStore(local, asCopy(broken))
  await store.put('packs/ab/here', Buffer.from('here'))
  await store.note('packs/ab/away', 4)
  assert.equal(Buffer.from(await store.get('packs/ab/here')).toString(), 'here')
  await assert.rejects(store.get('manifests/srv_a/1'), { code: 'blob_missing' })
  assert.deepEqual(await names(store, ''), ['packs/ab/away', 'packs/ab/here'])
  await assert.rejects(store.get('packs/ab/away'), { code: 'store_unreachable' })
  await assert.rejects(store.open('packs/ab/away'), { code: 'store_unreachable' })
  // A note that is damaged says nothing.
  const [note = ''] = await readdir(join(folder, 'local/away/packs/ab'))
  await writeFile(join(folder, 'local/away/packs/ab', note), 'spoilt')
  const again = await openLayeredStore(local, asCopy(broken))
  assert.equal(again.isAway('packs/ab/away'), false)
  await remove()
})
