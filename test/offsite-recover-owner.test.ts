// A bucket that belongs to a service which still runs, and somebody who recovers from it; and a bucket without some of its packs.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { blobsIn } from '../src/blobs/store.testing.ts'
import type { Backup } from '../src/contract/backups/backups.ts'
import { formatS3Place, type S3Keys } from '../src/contract/offsite-place.ts'
import { createHttp, type Http } from './support/http.ts'
import { needs } from './support/needs.ts'
import { killLeftovers, spawnService } from './support/process.ts'
import { runBinary } from './support/terminal.ts'
import { until } from './support/until.ts'
import { startVersityGw, type VersityGw } from './support/versitygw.ts'

const ADMIN = `gk_admin_${randomBytes(32).toString('hex')}`

describe('recovering from a bucket', needs('versitygw'), () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-owner-'))
  let gateway: VersityGw
  before(async () => {
    gateway = await startVersityGw()
  })
  after(async () => {
    killLeftovers()
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const place = (prefix: string) => formatS3Place(gateway.place(prefix))
  const settings = (prefix: string, keys: S3Keys = gateway.keys) => ({
    AWS_ACCESS_KEY_ID: keys.accessKeyId,
    AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
    GAMEKEEPER_OFFSITE: place(prefix),
  })

  async function startOn(dataDir: string, env: Record<string, string>) {
    const service = await spawnService({ ...env, GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: ADMIN })
    const http = createHttp(service.url, ADMIN)
    return { http, url: service.url, [Symbol.asyncDispose]: async () => void (await service.kill('SIGTERM')) }
  }

  async function recover(prefix: string, args: string[], keys?: S3Keys) {
    const env = settings(prefix, keys)
    const ran = await runBinary(['backup', 'recover', '--store', place(prefix), ...args], { env, cwd: folder })
    return {
      code: ran.code,
      text: ran.stdout,
      ...(args.includes('--json') ? JSON.parse(ran.stdout || ran.stderr) : {}),
    }
  }

  /** A backup of what was not there before. Resolves with how the bucket took it. */
  async function backUp(http: Http, dataDir: string, serverId: string) {
    const root = join(dataDir, 'servers', serverId, 'files')
    mkdirSync(root, { recursive: true })
    writeFileSync(join(root, 'region'), randomBytes(300_000))
    const { id } = await http.backup(serverId)
    const offsite = await until(async () => {
      const { body } = await http.call('GET', `/backups/${serverId}/${id}`)
      return (body as Backup).offsite?.state !== 'pending' && (body as Backup).offsite
    })
    return { id: id as string, state: offsite?.state, code: offsite?.error?.code }
  }

  async function restoreStatus(http: Http, serverId: string, backupId: string): Promise<string> {
    const request = { mode: 'replace', safetyBackup: false }
    const { body: job } = await http.call('POST', `/backups/${serverId}/${backupId}/restore`, request)
    return await until(async () => {
      const { body } = await http.call('GET', `/servers/${serverId}/jobs/${job.id}`)
      return ['completed', 'failed', 'cancelled'].includes(body.status) && body.status
    })
  }

  const newServer = async (http: Http) => (await http.call('POST', '/servers', { name: 'Castle' })).body.id as string

  test('says whose the bucket was and takes it over; looking, or a key that only reads, leaves it to its owner', async () => {
    const alive = join(folder, 'alive')
    await using production = await startOn(alive, settings('lent'))
    const { http } = production
    const castle = await newServer(http)
    const first = await backUp(http, alive, castle)
    assert.equal(first.state, 'stored')
    const { claimedAt } = JSON.parse(readFileSync(join(gateway.dir, 'lent/owner'), 'utf8'))
    const owner = { host: hostname(), claimedAt }

    const looked = await recover('lent', ['--list'])
    assert.equal(looked.code, 0)
    assert.match(looked.text, new RegExp(`belongs to the service on ${hostname()} since \\d.* UTC\\. Without --list`))
    assert.deepEqual((await recover('lent', ['--list', '--json'])).owner, { ...owner, isTakenOver: false })

    const guest = await gateway.addUser('reader')
    await gateway.allow(guest, 's3:ListBucket', 's3:GetObject')
    const rehearsal = join(folder, 'rehearsal')
    const rehearsed = await recover('lent', ['--data', rehearsal, '--json'], guest)
    assert.deepEqual([rehearsed.code, rehearsed.recovered?.adopted], [0, [first.id]], JSON.stringify(rehearsed))
    assert.deepEqual(rehearsed.owner, { ...owner, isTakenOver: false })
    assert.match(rehearsed.unclaimed, /s3:PutObject/)
    {
      await using service = await startOn(rehearsal, settings('lent', guest))
      assert.equal(await restoreStatus(service.http, castle, first.id), 'completed')
    }
    assert.equal((await backUp(http, alive, castle)).state, 'stored')

    const taking = join(folder, 'taking')
    const took = await recover('lent', ['--data', taking])
    assert.equal(took.code, 0)
    assert.match(took.text, new RegExp(`belonged to the service on ${hostname()} since .*, and was taken over`))
    const again = await recover('lent', ['--data', taking, '--json'])
    assert.deepEqual([again.owner, again.unclaimed], [null, null])
    assert.deepEqual(await backUp(http, alive, castle).then(({ state, code }) => [state, code]), [
      'failed',
      'offsite_taken',
    ])
    {
      await using service = await startOn(taking, settings('lent'))
      assert.equal((await backUp(service.http, taking, castle)).state, 'stored')
    }
    const claim = { env: { GAMEKEEPER_URL: production.url, GAMEKEEPER_TOKEN: ADMIN } }
    assert.equal((await runBinary(['offsite', 'claim'], claim)).code, 0)
    assert.equal((await backUp(http, alive, castle)).state, 'stored')
  })

  test('a backup whose packs the bucket does not have whole is damaged', async () => {
    const old = join(folder, 'old')
    const ids: string[] = []
    const packs: string[] = []
    let castle = ''
    {
      await using service = await startOn(old, settings('torn'))
      castle = await newServer(service.http)
      for (let count = 0; count < 3; count++) {
        ids.push((await backUp(service.http, old, castle)).id)
        packs.push(...blobsIn(gateway.dir, 'torn/packs').filter((path) => !packs.includes(path)))
      }
    }
    const [gone = '', short = '', whole = ''] = ids
    assert.equal(packs.length, 3)
    rmSync(packs[0] ?? '')
    truncateSync(packs[1] ?? '', 1000)
    const fresh = join(folder, 'new')
    for (const args of [['--list'], ['--data', fresh], ['--data', fresh]]) {
      const found = await recover('torn', [...args, '--json'])
      const damageOf = (id: string) => found.servers[0].backups.find((each: { id: string }) => each.id === id).damage
      assert.equal(found.code, 1)
      assert.match(damageOf(gone), /^missing blocks: \d+, the first in packs\/.*, which is not there$/)
      assert.match(
        damageOf(short),
        /^missing blocks: \d+, the first in packs\/.*, which has 1000 bytes instead of \d+$/,
      )
      assert.equal(damageOf(whole), null)
      if (found.recovered) assert.deepEqual(found.recovered.damaged.sort(), [gone, short].sort())
    }
    assert.match((await recover('torn', ['--data', fresh])).text, /2 damaged/)
    {
      await using service = await startOn(fresh, settings('torn'))
      const errors = []
      for (const id of ids) errors.push((await service.http.call('GET', `/backups/${castle}/${id}`)).body.error?.code)
      assert.deepEqual(errors, ['backup_damaged', 'backup_damaged', undefined])
      assert.equal(await restoreStatus(service.http, castle, whole), 'completed')
      const { body } = await service.http.call('GET', '/activity?event=backup.healed')
      assert.deepEqual(body.data, [])
    }

    // Packs say themselves what they hold.
    rmSync(join(gateway.dir, 'torn/index'), { recursive: true })
    const unlisted = await recover('torn', ['--data', join(folder, 'unlisted'), '--json'])
    assert.equal(unlisted.code, 1)
    for (const { damage } of unlisted.servers[0].backups) assert.match(damage, /in no index, nor are packs: 2$/)
    assert.deepEqual(unlisted.recovered.damaged.sort(), [gone, short].sort())
  })
})
