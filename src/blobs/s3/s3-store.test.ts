import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3'
import { needs } from '../../../test/support/needs.ts'
import { startVersityGw, type VersityGw } from '../../../test/support/versitygw.ts'
import { copyBlob } from '../copy-blob.ts'
import { openLocalStore } from '../local.ts'
import { openBlobStore } from '../open-store.ts'
import { blobStoreContract } from '../store.contract.ts'
import type { BlobStore } from '../store.ts'
import { type S3Address, type S3Traits, s3Address } from './address.ts'
import { createRequests } from './requests.ts'

const MIB = 1024 * 1024
/** What versitygw can do; examine.test.ts finds out that it can. */
const ABLE: Partial<S3Traits> = { conditionalPut: true, conditionalMultipart: true, checksum: 'crc32' }

describe('S3', needs('versitygw'), () => {
  let gateway: VersityGw
  before(async () => {
    gateway = await startVersityGw()
  })
  after(() => gateway.stop())

  const addressOf = (prefix: string, traits: Partial<S3Traits> = ABLE): S3Address => {
    const address = s3Address(gateway.place(prefix), gateway.keys)
    return { ...address, traits: { ...address.traits, ...traits } }
  }

  /** With a prefix of its own. */
  async function open(traits?: Partial<S3Traits>): Promise<{ store: BlobStore; dir: string; address: S3Address }> {
    const prefix = `castle/${randomUUID()}`
    const address = addressOf(prefix, traits)
    return { store: await openBlobStore(address, { clear: false }), dir: join(gateway.dir, prefix), address }
  }

  const sourceOf = (bytes: Buffer) => ({
    sizeBytes: bytes.length,
    read: async ({ offset, length }: { offset: number; length: number }) => bytes.subarray(offset, offset + length),
  })

  blobStoreContract('S3', async () => {
    const { store, dir, address } = await open()
    return {
      store,
      reopen: () => openBlobStore(address, { clear: true }),
      remove: async () => rmSync(dir, { recursive: true, force: true }),
    }
  })

  it('stores what is written in parts, and nothing of it where it is aborted', async () => {
    const { store, address } = await open()
    const bytes = randomBytes(17 * MIB + 5)
    const writer = await store.create('packs/large')
    for (let at = 0; at < bytes.length; at += 3 * MIB) await writer.write(bytes.subarray(at, at + 3 * MIB))
    await assert.rejects(store.stat('packs/large'), { code: 'blob_missing' })
    await writer.commit()
    await writer.abort()
    assert.deepEqual(Buffer.from(await store.get('packs/large')), bytes)
    const aborted = await store.create('packs/aborted')
    await aborted.write(bytes.subarray(0, 9 * MIB))
    assert.equal(await unfinishedIn(address), 1)
    await aborted.abort()
    assert.equal(await unfinishedIn(address), 0)
  })

  it('removes what an earlier writer has left unfinished, of its own prefix alone, when it is opened to clear', async () => {
    const [one, other] = [await open(), await open()]
    for (const { store } of [one, other]) await (await store.create('packs/half')).write(randomBytes(9 * MIB))
    await openBlobStore(one.address, { clear: false })
    assert.equal(await unfinishedIn(one.address), 1)
    await openBlobStore(one.address, { clear: true })
    assert.equal(await unfinishedIn(one.address), 0)
    assert.equal(await unfinishedIn(other.address), 1)
    await openBlobStore(other.address, { clear: true })
  })

  async function unfinishedIn(address: S3Address): Promise<number> {
    const { client } = createRequests(address)
    const input = { Bucket: address.bucket, Prefix: `${address.prefix}/` }
    return (await client.send(new ListMultipartUploadsCommand(input))).Uploads?.length ?? 0
  }

  it('takes what is larger than a pack in parts, from a source, in bounded memory', async () => {
    const { store } = await open()
    const bytes = randomBytes(65 * MIB)
    let held = 0
    const source = sourceOf(bytes)
    const read = async (range: { offset: number; length: number }) => {
      held = Math.max(held, range.length)
      return await source.read(range)
    }
    await store.copyIn?.('manifests/large', { ...source, read })
    assert.ok(held <= MIB)
    assert.deepEqual(Buffer.from(await store.get('manifests/large')), bytes)
    bytes[3] = (bytes[3] ?? 0) ^ 1
    await assert.rejects(store.copyIn?.('manifests/large', source) ?? Promise.resolve(), { code: 'blob_exists' })
  })

  for (const [label, traits] of [
    ['by conditional requests', ABLE],
    ['by asking first, where the provider has none', { conditionalPut: false, conditionalMultipart: false }],
  ] as const) {
    it(`never overwrites, ${label}: the same bytes are there already, others are refused`, async () => {
      const { store } = await open(traits)
      // The larger one is refused before all of it was sent.
      for (const size of [10, 8 * MIB]) {
        const bytes = randomBytes(size)
        const name = `packs/${size}`
        await store.copyIn?.(name, sourceOf(bytes))
        await store.copyIn?.(name, sourceOf(bytes))
        const other = Buffer.from(bytes)
        other[3] = (other[3] ?? 0) ^ 1
        await assert.rejects(store.copyIn?.(name, sourceOf(other)) ?? Promise.resolve(), { code: 'blob_exists' })
        const part = await store.get(name, { offset: 0, length: 10 })
        assert.deepEqual(Buffer.from(part), bytes.subarray(0, 10))
      }
      const writer = await store.create('packs/10')
      await writer.write(Buffer.from('other bytes'))
      await assert.rejects(writer.commit(), { code: 'blob_exists' })
      await store.copyIn?.('packs/10', sourceOf(Buffer.from('replaced')), { replace: true })
      assert.equal(Buffer.from(await store.get('packs/10')).toString(), 'replaced')
    })
  }

  for (const checksum of ['crc32', 'md5', 'signature'] as const) {
    it(`sends ${checksum} with what it sends, which the provider compares`, async () => {
      const { store } = await open({ checksum })
      const bytes = randomBytes(2 * MIB + 1)
      await store.put('packs/one', bytes)
      assert.deepEqual(Buffer.from(await store.get('packs/one')), bytes)
      let reads = 0
      const changing = {
        sizeBytes: 1000,
        // Other bytes are sent than those that the checksum was made of.
        read: async () => Buffer.alloc(1000, ++reads),
      }
      const impatient = await openImpatient(checksum)
      await assert.rejects(impatient.copyIn?.('packs/two', changing) ?? Promise.resolve(), { code: 'bad_transfer' })
    })
  }

  async function openImpatient(checksum: S3Traits['checksum']): Promise<BlobStore> {
    const { openS3Store } = await import('./s3-store.ts')
    const { PATIENCE } = await import('./requests.ts')
    const address = addressOf(`castle/${randomUUID()}`, { ...ABLE, checksum })
    return await openS3Store(address, { clear: false }, { ...PATIENCE, attempts: 1 })
  }

  it('lists more than fits into one answer, and nothing that is not ours', async () => {
    const { store, dir } = await open()
    mkdirSync(join(dir, 'packs'), { recursive: true })
    for (let index = 0; index < 1003; index++) writeFileSync(join(dir, 'packs', `p${index}`), 'x')
    writeFileSync(join(dir, 'packs', 'Not a blob.txt'), 'x')
    const names = new Set<string>()
    for await (const { name, sizeBytes } of store.list('')) {
      names.add(name)
      assert.equal(sizeBytes, 1)
    }
    assert.equal(names.size, 1003)
  })

  it('names a blob damaged whose checksum in the bucket is not that of its bytes', async () => {
    const { store, dir } = await open()
    await store.put('index/one', randomBytes(1000))
    const file = join(dir, 'index/one')
    const bytes = readFileSync(file)
    bytes[500] = (bytes[500] ?? 0) ^ 1
    writeFileSync(file, bytes)
    await assert.rejects(store.get('index/one'), { code: 'blob_damaged' })
    assert.equal((await store.get('index/one', { offset: 0, length: 1000 })).length, 1000)
  })

  it('copies from a disk, and back', async () => {
    const { store, dir } = await open()
    const local = await openLocalStore(join(dir, '..', randomUUID()), { clear: true })
    const bytes = randomBytes(3 * MIB)
    await local.put('packs/one', bytes)
    const paced: number[] = []
    const pace = async (count: number) => void paced.push(count)
    await copyBlob(local, store, { name: 'packs/one', sizeBytes: bytes.length }, { pace })
    assert.equal(
      paced.reduce((sum, count) => sum + count, 0),
      bytes.length,
    )
    assert.ok(existsSync(join(dir, 'packs/one')))
    await local.delete('packs/one')
    await copyBlob(store, local, { name: 'packs/one', sizeBytes: bytes.length })
    assert.deepEqual(Buffer.from(await local.get('packs/one')), bytes)
    await assert.rejects(copyBlob(local, store, { name: 'packs/none', sizeBytes: 1 }), { code: 'blob_missing' })
    await assert.rejects(copyBlob(local, store, { name: 'packs/one', sizeBytes: bytes.length + 1 }), /became shorter/)
  })

  it('stops when it is told to', async () => {
    const { store } = await open()
    const stopping = new AbortController()
    const reason = new Error('the service stops')
    const source = sourceOf(randomBytes(4 * MIB))
    const pace = async () => stopping.abort(reason)
    const sent = store.copyIn?.('packs/one', source, { pace, signal: stopping.signal }) ?? Promise.resolve()
    await assert.rejects(sent, reason)
    await assert.rejects(store.stat('packs/one'), { code: 'blob_missing' })
  })
})
