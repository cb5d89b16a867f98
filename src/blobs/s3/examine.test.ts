import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, utimesSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { describe, it, mock } from 'node:test'
import { makeCertificate } from '../../../test/support/certificates.ts'
import { freePort, listeningPort, temporaryDirectory } from '../../../test/support/daemons.ts'
import { needs } from '../../../test/support/needs.ts'
import { useTroubledS3 } from '../../../test/support/troubled-s3.ts'
import type { S3Keys, S3Place } from '../../contract/offsite-place.ts'
import { createBucket } from '../bucket.ts'
import { namesIn } from '../store.testing.ts'
import { type Examination, type ExamineOptions, examine } from './examine.ts'
import type { Patience } from './requests.ts'

const REGION = 'castle-1'
const NO_CLEAR = { clear: false }
const QUICK: Patience = { attempts: 2, firstPauseMs: 1, longestPauseMs: 5, connectMs: 1000, stallMs: 5000 }

describe('the examination of a bucket', needs('versitygw'), () => {
  const s3 = useTroubledS3({ region: REGION })

  const placeOf = (): S3Place => ({ ...s3.gateway.place(randomUUID(), s3.proxy.url), region: REGION })
  const look = (
    place: S3Place = placeOf(),
    keys: S3Keys = s3.gateway.keys,
    options: Partial<ExamineOptions> = {},
  ): Promise<Examination> => examine(place, keys, { isAppendOnly: false, measureBytes: 0, patience: QUICK, ...options })
  const probesOf = ({ prefix }: S3Place) => join(s3.gateway.dir, prefix, 'probe')
  const statusOf = ({ findings }: Examination, check: string) => findings.find((each) => each.check === check)?.status
  const failureOf = ({ findings }: Examination) => findings.find(({ status }) => status === 'fail')

  it('finds what the provider can do, and leaves nothing behind', async () => {
    const place = placeOf()
    const told: string[] = []
    const report = ({ check }: { check: string }) => void told.push(check)
    const examined = await look(place, s3.gateway.keys, { measureBytes: 100_000, report })
    assert.equal(failureOf(examined), undefined, JSON.stringify(failureOf(examined)))
    assert.deepEqual(examined.address?.traits, {
      addressing: 'path',
      conditionalPut: true,
      conditionalMultipart: true,
      checksum: 'crc32',
    })
    assert.deepEqual(
      told,
      examined.findings.map(({ check }) => check),
    )
    for (const check of ['bucket', 'clock', 'write', 'checksums', 'overwriting', 'read', 'list', 'delete', 'speed'])
      assert.equal(statusOf(examined, check), 'ok', check)
    assert.match(examined.findings.at(-1)?.detail ?? '', /^[\d.]+ MB\/s there, [\d.]+ MB\/s back/)
    assert.deepEqual(namesIn(probesOf(place), ''), [])
  })

  it('It uses blobs of its own below `probe/` of the prefix, and nothing else.', async () => {
    const place = placeOf()
    await look(place, s3.gateway.keys, { measureBytes: 1000 })
    const changed = s3.proxy.seen.filter(({ method }) => !/GET|HEAD/.test(method))
    assert.ok(changed.length > 5)
    for (const { url } of changed) assert.ok(url.startsWith(`/${place.bucket}/${place.prefix}/probe/`), url)
  })

  it('is not disturbed by others that are made at the same time', async () => {
    const place = placeOf()
    const others: Examination[] = []
    let isFirst = true
    // In the middle of the first all of another one, which leaves nothing behind.
    s3.proxy.trouble = ({ method, url }) => {
      if (method !== 'GET' || !url.includes('/probe/') || !isFirst) return undefined
      isFirst = false
      return { kind: 'before-answer', work: async () => void others.push(await look(place)) }
    }
    const examined = await Promise.all([
      look(place),
      createBucket({ place, keys: s3.gateway.keys }).openMirror(NO_CLEAR),
    ])
    assert.equal(others.length, 1)
    for (const each of [examined[0], ...others]) assert.equal(failureOf(each), undefined, JSON.stringify(each.findings))
    assert.deepEqual(namesIn(probesOf(place), ''), [])
  })

  it('takes away what others have left that were cut short, and nothing else', async () => {
    const place = placeOf()
    const [abandoned, recent] = [`blob-${'a'.repeat(16)}`, `speed-${'b'.repeat(16)}`]
    const store = await createBucket({ place, keys: s3.gateway.keys }).open()
    for (const name of [abandoned, recent, 'somebody-else']) await store.put(`probe/${name}`, Buffer.from('left'))
    const yesterday = new Date(Date.now() - 24 * 3600_000)
    for (const name of [abandoned, 'somebody-else']) utimesSync(join(probesOf(place), name), yesterday, yesterday)
    await look(place)
    assert.deepEqual(namesIn(probesOf(place), ''), ['somebody-else', recent])
    s3.proxy.trouble = ({ method, url }) =>
      method === 'GET' && url.includes('/probe/') ? { kind: 'answer', status: 403, code: 'AccessDenied' } : undefined
    assert.equal(failureOf(await look(place))?.check, 'read')
    assert.deepEqual(namesIn(probesOf(place), ''), ['somebody-else', recent], 'it fails, and leaves nothing')
  })

  it('with a key that may not delete leaves the same blob each time', async () => {
    const place = placeOf()
    const user = await s3.gateway.addUser('keeper')
    const rights = ['s3:ListBucket', 's3:PutObject', 's3:GetObject', 's3:AbortMultipartUpload']
    await s3.gateway.allow(user, ...rights)
    for (const examined of await Promise.all([look(place, user), look(place, user), look(place, user)]))
      assert.equal(failureOf(examined), undefined, JSON.stringify(examined.findings))
    assert.deepEqual(namesIn(probesOf(place), ''), ['blob'])
  })

  it('finds the region that the provider names, unless one is set', async () => {
    const elsewhere = { ...placeOf(), region: null }
    s3.proxy.trouble = ({ headers }) =>
      headers.authorization?.includes(REGION)
        ? undefined
        : {
            kind: 'answer',
            status: 400,
            body: `<Error><Code>AuthorizationHeaderMalformed</Code><Message>No.</Message><Region>${REGION}</Region></Error>`,
          }
    const examined = await look(elsewhere)
    assert.equal(examined.address?.region, REGION)
    // So does whoever only reads: on the day of a recovery nobody has tried it before.
    const store = await createBucket({ place: elsewhere, keys: s3.gateway.keys }).open()
    await assert.rejects(store.get('nothing'), { code: 'blob_missing' })
    const insisted = failureOf(await look({ ...elsewhere, region: 'us-west-2' }))
    assert.equal(insisted?.code, 'wrong_region')
    assert.match(insisted?.detail ?? '', /is in the region castle-1, not in us-west-2\. Set region=castle-1\./)
  })

  it('does without conditional writes where a provider refuses or ignores them', async () => {
    s3.proxy.trouble = ({ headers }) =>
      headers['if-none-match'] ? { kind: 'answer', status: 501, code: 'NotImplemented' } : undefined
    const refusing = await look()
    assert.equal(refusing.address?.traits.conditionalPut, false)
    assert.equal(refusing.address?.traits.conditionalMultipart, false)
    assert.equal(failureOf(refusing), undefined)
    const place = placeOf()
    // Where the blob is gone by then, the condition holds: as if nobody had asked for it.
    s3.proxy.trouble = ({ headers }) => {
      if (headers['if-none-match']) rmSync(probesOf(place), { recursive: true, force: true })
      return undefined
    }
    const ignoring = await look(place)
    assert.equal(ignoring.address?.traits.conditionalPut, false)
    assert.equal(ignoring.address?.traits.conditionalMultipart, false)
    assert.match(JSON.stringify(ignoring.findings), /has no conditional writes/)
  })

  it('It must refuse a wrong one, or it is not relied on.', async () => {
    const without = (...names: string[]) => {
      s3.proxy.trouble = ({ method, headers }) =>
        method === 'PUT' && names.some((name) => headers[name])
          ? { kind: 'answer', status: 501, code: 'NotImplemented' }
          : undefined
    }
    without('x-amz-checksum-crc32')
    assert.equal((await look()).address?.traits.checksum, 'md5')
    without('x-amz-checksum-crc32', 'content-md5')
    assert.equal((await look()).address?.traits.checksum, 'signature')
    // Whatever is sent with it is taken, the wrong one included.
    s3.proxy.trouble = ({ method, headers }) =>
      method === 'PUT' && headers['x-amz-checksum-crc32']
        ? { kind: 'answer', status: 200, headers: { etag: '"x"' } }
        : undefined
    assert.equal((await look()).address?.traits.checksum, 'md5')
  })

  it('says that the clock is wrong, and goes on', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.now() - 20 * 60_000 })
    try {
      const examined = await look()
      assert.equal(failureOf(examined), undefined)
      const clock = examined.findings.find(({ check }) => check === 'clock')
      assert.equal(clock?.status, 'warn')
      assert.match(clock?.detail ?? '', /This machine is 20 minutes behind .*NTP/)
    } finally {
      mock.timers.reset()
    }
  })

  it('says that it looks like https where plain HTTP is sent to a server that speaks TLS', async (t) => {
    const folder = temporaryDirectory('tls')
    t.after(() => folder.remove())
    const { key, cert } = makeCertificate(folder.path, 'bucket')
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }).listen(0, '127.0.0.1')
    t.after(() => server.close())
    const host = `127.0.0.1:${await listeningPort(server)}`
    const place = { ...placeOf(), endpoint: `http://${host}` }
    const said = new RegExp(`this looks like https\\. Set endpoint=https://${host}\\.$`)
    assert.match(failureOf(await look(place))?.detail ?? '', said)
    await assert.rejects(createBucket({ place, keys: s3.gateway.keys }).open(), { message: said })
  })

  it('says what is wrong, and nothing of the secret', async () => {
    const nobody = { ...s3.gateway.keys, accessKeyId: 'nobody' }
    const wrong: [Examination, string, string][] = [
      [await look(placeOf(), nobody), 'bucket', 'wrong_key'],
      [await look(placeOf(), { ...s3.gateway.keys, secretAccessKey: 'other' }), 'bucket', 'wrong_key'],
      [await look({ ...placeOf(), bucket: 'nothing-here' }), 'bucket', 'no_bucket'],
      [await look({ ...placeOf(), endpoint: `http://127.0.0.1:${await freePort()}` }), 'bucket', 'unreachable'],
    ]
    for (const [examined, check, code] of wrong) {
      assert.equal(examined.address, null)
      const failure = failureOf(examined)
      assert.deepEqual([failure?.check, failure?.code], [check, code])
      assert.doesNotMatch(JSON.stringify(examined), /secret-of-tests/)
    }
  })

  it('names the right that a key lacks, and is content with a key that may not delete where that is meant', async () => {
    const user = await s3.gateway.addUser('guest')
    const allow = (...actions: string[]) => s3.gateway.allow(user, ...actions)
    const lacking = async () => {
      const failure = failureOf(await look(placeOf(), user))
      return [failure?.check, failure?.code, /s3:\w+/.exec(failure?.detail ?? '')?.[0]]
    }
    await allow('s3:GetObject')
    assert.deepEqual(await lacking(), ['bucket', 'no_permission', 's3:ListBucket'])
    await allow('s3:ListBucket', 's3:GetObject')
    assert.deepEqual(await lacking(), ['write', 'no_permission', 's3:PutObject'])
    await allow('s3:ListBucket', 's3:PutObject', 's3:AbortMultipartUpload')
    assert.deepEqual(await lacking(), ['read', 'no_permission', 's3:GetObject'])
    await allow('s3:ListBucket', 's3:PutObject', 's3:GetObject', 's3:AbortMultipartUpload')
    const kept = await look(placeOf(), user, { measureBytes: 1000 })
    assert.equal(statusOf(kept, 'delete'), 'warn')
    assert.equal(statusOf(kept, 'speed'), 'skip')
    assert.match(
      JSON.stringify(kept.findings),
      /may not do s3:DeleteObject: allow it, or set GAMEKEEPER_OFFSITE_APPEND_ONLY=1/,
    )
    assert.equal(statusOf(await look(placeOf(), user, { isAppendOnly: true }), 'delete'), 'ok')
    assert.equal(statusOf(await look(placeOf(), s3.gateway.keys, { isAppendOnly: true }), 'delete'), 'warn')
  })
})
