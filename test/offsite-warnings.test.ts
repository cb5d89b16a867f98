// What is not as it should be with a bucket that works all the same, as its operator hears of it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { namesIn } from '../src/blobs/store.testing.ts'
import type { Offsite } from '../src/contract/backups/offsite.ts'
import { formatS3Place, type S3Keys } from '../src/contract/offsite-place.ts'
import { createHttp, type Http } from './support/http.ts'
import { needs } from './support/needs.ts'
import { killLeftovers, type ServiceProcess, spawnService } from './support/process.ts'
import { runPiped } from './support/terminal.ts'
import { until } from './support/until.ts'
import { startVersityGw, type VersityGw } from './support/versitygw.ts'

const ADMIN = `gk_admin_${randomBytes(32).toString('hex')}`
const WITHOUT_DELETE = [
  's3:ListBucket',
  's3:ListBucketMultipartUploads',
  's3:GetObject',
  's3:PutObject',
  's3:AbortMultipartUpload',
]
const MAY_NOT_DELETE =
  'The key may not do s3:DeleteObject: allow it, or set GAMEKEEPER_OFFSITE_APPEND_ONLY=1 if it is meant so.'

describe('a key that may not delete, where nobody has said so', needs('versitygw'), () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-warnings-'))
  let gateway: VersityGw
  let user: S3Keys
  let service: ServiceProcess
  let http: Http
  let server: string
  before(async () => {
    gateway = await startVersityGw()
    user = await gateway.addUser('guest')
    await gateway.allow(user, ...WITHOUT_DELETE)
    service = await spawnService({
      GAMEKEEPER_DATA_DIR: folder,
      GAMEKEEPER_ADMIN_TOKEN: ADMIN,
      GAMEKEEPER_LOG_LEVEL: 'warn',
      GAMEKEEPER_OFFSITE: formatS3Place(gateway.place('castle')),
      AWS_ACCESS_KEY_ID: user.accessKeyId,
      AWS_SECRET_ACCESS_KEY: user.secretAccessKey,
    })
    http = createHttp(service.url, ADMIN)
    server = (await http.call('POST', '/servers', { name: 'Castle' })).body.id
  })
  after(async () => {
    killLeftovers()
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const read = async (): Promise<Offsite> => (await http.call('GET', '/offsite')).body
  const logged = () => service.output().split(MAY_NOT_DELETE).length - 1
  async function backup(): Promise<string> {
    writeFileSync(join(folder, 'servers', server, 'files/region'), randomBytes(100_000))
    const { id } = await http.backup(server)
    await until(async () => (await http.call('GET', `/backups/${server}/${id}`)).body.offsite.state === 'stored')
    return id
  }
  const untilIdle = () =>
    until(async () => {
      const offsite = await read()
      return offsite.activity === 'idle' && offsite.lastRun && offsite
    })

  test('is said at the start: once in the log, and in the state of the off-site store', async () => {
    const offsite = await untilIdle()
    assert.deepEqual([offsite.isReachable, offsite.problem, offsite.lastRun?.error], [true, MAY_NOT_DELETE, null])
    // What is logged comes by another way than the answer.
    await until(async () => logged() > 0)
    assert.equal(logged(), 1, service.output())
    const status = await runPiped(['offsite', 'status'], { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: ADMIN })
    assert.equal(status.code, 1)
    assert.ok(status.stdout.replace(/\s+/g, ' ').includes(MAY_NOT_DELETE), status.stdout)
  })

  test('keeps no backup from being sent, and what was deleted goes once the key may delete', async () => {
    const made: string[] = []
    for (let count = 0; count < 4; count++) made.push(await backup())
    const [first = ''] = made
    await http.call('DELETE', `/backups/${server}/${first}`)
    await backup()
    const refused = await until(async () => {
      const offsite = await read()
      return offsite.surplus && offsite.activity === 'idle' && offsite
    })
    assert.deepEqual([refused.isReachable, refused.problem, refused.lastRun?.error], [true, MAY_NOT_DELETE, null])
    assert.deepEqual([refused.surplus?.backups, refused.surplus?.reason], [1, 'append_only'])
    const prune = await runPiped(['offsite', 'prune'], { GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: ADMIN })
    assert.equal(prune.code, 1)
    assert.match(prune.stderr, /may not do s3:DeleteObject/)
    assert.ok(namesIn(gateway.dir, 'castle/manifests').includes(first))

    await gateway.allow(user, ...WITHOUT_DELETE, 's3:DeleteObject')
    await backup()
    await until(async () => !namesIn(gateway.dir, 'castle/manifests').includes(first))
    assert.equal((await untilIdle()).problem, null)
    assert.equal(logged(), 1, service.output())
  })
})
