// How much is asked of a bucket before it is used, seen from where the requests pass.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { needs } from '../../test/support/needs.ts'
import { useTroubledS3 } from '../../test/support/troubled-s3.ts'
import { createBucket, type FoundBucket } from './bucket.ts'

describe('a bucket', needs('versitygw'), () => {
  const s3 = useTroubledS3()
  const HOUR_MS = 3600_000

  function bucketWith(found?: Partial<FoundBucket>) {
    const place = s3.gateway.place(randomUUID(), s3.proxy.url)
    const all: FoundBucket = { region: 'us-east-1', addressing: 'path', goodUntil: Date.now() + HOUR_MS, ...found }
    s3.proxy.seen.length = 0
    const bucket = createBucket({ place, keys: s3.gateway.keys, found: found && all })
    return { bucket, exists: (name: string) => existsSync(join(s3.gateway.dir, place.prefix, name)) }
  }
  const requests = () => s3.proxy.seen.splice(0).map(({ method, url }) => `${method} ${url.replace(/\?.*/, '')}`)
  const probes = (all: string[]) => all.filter((request) => request.includes('/probe/'))

  it('that was found lately is read and listed without a question, and examined before the first write', async () => {
    const { bucket, exists } = bucketWith({})
    const store = await bucket.openMirror({ clear: true })
    await assert.rejects(store.get('owner'), { code: 'blob_missing' })
    assert.deepEqual(await store.listAll?.(), [])
    assert.equal(requests().length, 2)
    await store.put('owner', Buffer.from('castle'))
    assert.ok(exists('owner'))
    const [first = '', ...others] = requests().reverse()
    assert.match(first, /^PUT .*\/owner$/)
    assert.ok(probes(others).length > 5)
    await store.put('owner', Buffer.from('castle'))
    assert.equal(Buffer.from(await store.get('owner')).toString(), 'castle')
    assert.deepEqual(probes(requests()), [])
  })

  it('is examined at once where nothing was found lately, or where what was found does not hold', async () => {
    const old = bucketWith({ goodUntil: Date.now() })
    await old.bucket.openMirror({ clear: false })
    assert.ok(probes(requests()).length > 5)
    const moved = bucketWith({ region: 'castle-2' })
    const store = await moved.bucket.openMirror({ clear: false })
    await assert.rejects(store.get('owner'), { code: 'wrong_region' })
    assert.deepEqual(probes(requests()), [])
    await assert.rejects(store.get('owner'), { code: 'blob_missing' })
    assert.ok(probes(requests()).length > 5)
  })

  it('is asked once where it is, whoever reads from it', async () => {
    const { bucket } = bucketWith()
    for (const store of [await bucket.open(), await bucket.open()])
      await assert.rejects(store.get('format'), { code: 'blob_missing' })
    assert.equal(requests().length, 3)
    assert.deepEqual(bucket.whereabouts(), { region: 'us-east-1', addressing: 'path' })
  })
})
