// Backups whose packs are only in a bucket, read by callers of the API while the bucket does not answer.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { blobsIn } from '../src/blobs/store.testing.ts'
import { formatS3Place } from '../src/contract/offsite-place.ts'
import { createWorld, type World } from './support/backups.ts'
import { needs } from './support/needs.ts'
import { type Reply, startTestService, type TestService } from './support/service.ts'
import { useTroubledS3 } from './support/troubled-s3.ts'
import { until } from './support/until.ts'

const FORMATS = ['tar', 'zip', 'tar.gz', 'tar.zst']

describe('a backup that is only in the bucket', needs('versitygw'), () => {
  const s3 = useTroubledS3()
  let service: TestService
  let world: World
  let server: string
  /** Of `early` and `later`: of each the content is in a pack of its own. */
  let backupId: string
  let laterPack: string

  const packs = () => blobsIn(join(service.dataDir, 'backups'), 'packs').map((path) => path.slice(-32))
  async function backupAddsPack(files: Record<string, Buffer>): Promise<{ id: string; pack: string }> {
    const known = new Set(packs())
    await world.write(server, files)
    const { id } = await world.backup(server)
    return { id, pack: packs().find((pack) => !known.has(pack)) ?? '' }
  }

  before(async () => {
    const { accessKeyId, secretAccessKey } = s3.gateway.keys
    const env = {
      GAMEKEEPER_OFFSITE: formatS3Place(s3.gateway.place('down', s3.proxy.url)),
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    }
    service = await startTestService({ env })
    world = createWorld(service)
    server = await world.server({ early: randomBytes(2_000_000) })
    await world.backup(server)
    const later = await backupAddsPack({ later: randomBytes(2_000_000) })
    backupId = later.id
    laterPack = later.pack
    for (const name of ['early', 'later']) rmSync(join(world.folder(server), name))
    const newest = await backupAddsPack({ newest: randomBytes(100_000) })
    await service.restart({ GAMEKEEPER_KEEP_LOCAL: '1KB' })
    await until(async () => packs().join() === newest.pack)
  })
  after(() => service.stop())

  const nothingAnswers = () => {
    s3.proxy.trouble = () => ({ kind: 'cut-request', afterBytes: 0 })
  }
  const get = (path: string, headers: Record<string, string> = {}) =>
    service.call('GET', `/backups/${server}/${backupId}${path}`, { headers })
  function assertUnreachable({ status, headers, body, text }: Reply): void {
    assert.deepEqual([status, body.code], [503, 'offsite_unreachable'], text.slice(0, 300))
    assert.match(headers.get('content-type') ?? '', /problem\+json/)
    assert.match(body.detail, /off-site/)
  }

  test('answers offsite_unreachable to whoever reads its content', async () => {
    nothingAnswers()
    const { body: link } = await service.call('POST', `/backups/${server}/${backupId}/download`, { body: {} })
    const replies = await Promise.all([
      get('/files/content?path=/early'),
      get('/files/content?path=/later', { range: 'bytes=1500000-1500009' }),
      get('/download', { range: 'bytes=100-200' }),
      service.call('GET', new URL(link.url).pathname, { token: null }),
      ...FORMATS.map((format) => get(`/download?format=${format}`)),
    ])
    for (const reply of replies) assertUnreachable(reply)
  })

  test('is listed, compared and counted without the bucket', async () => {
    nothingAnswers()
    const ok = async (method: string, path: string) => {
      const reply = await service.call(method, path, method === 'POST' ? { body: {} } : {})
      assert.equal(reply.status, 200, `${path} ${reply.text}`)
      return reply.body
    }
    const listed = await ok('GET', `/backups/${server}/${backupId}/files?path=/`)
    assert.deepEqual(
      listed.data.map(({ name }: { name: string }) => name),
      ['early', 'later'],
    )
    assert.equal((await ok('GET', `/files/${server}/versions?path=/early`)).data.length, 2)
    assert.equal((await ok('GET', `/backups/${server}/compare?from=${backupId}`)).data.length, 3)
    await ok('POST', `/backups/${server}/preview`)
  })

  test('fails a restore of all of it, of one file, and a verify, with the same code', async () => {
    nothingAnswers()
    const verifying = await service.call('POST', `/backups/${server}/${backupId}/verify`)
    const ended = [
      await world.restore(server, backupId, { safetyBackup: false }),
      await world.restore(server, backupId, { mode: 'merge', paths: ['/early'], safetyBackup: false }),
      await world.jobEnded(server, verifying.body.id),
    ]
    for (const { status, error } of ended) assert.deepEqual([status, error?.code], ['failed', 'offsite_unreachable'])
  })

  test('breaks off a download where the bucket fails in the middle, and is whole once it answers again', async () => {
    const fetched = async (format: string) => {
      const url = `${service.url}/v1/game/backups/${server}/${backupId}/download?format=${format}`
      const answer = await fetch(url, { headers: { authorization: `Bearer ${service.adminToken}` } })
      assert.equal(answer.status, 200)
      return await answer.bytes()
    }
    s3.proxy.trouble = ({ url }) => (url.includes(laterPack) ? { kind: 'cut-request', afterBytes: 0 } : undefined)
    await Promise.all(FORMATS.map((format) => assert.rejects(fetched(format), { message: 'terminated' }, format)))
    assertUnreachable(await get('/files/content?path=/later'))
    s3.proxy.trouble = () => undefined
    s3.proxy.seen.length = 0
    assert.ok((await fetched('tar')).length > 4_000_000)
    // That the first pack can be had was found by fetching it.
    assert.equal(s3.proxy.seen.length, 2)
  })
})
