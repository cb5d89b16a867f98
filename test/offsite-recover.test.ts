// The day when the machine is gone, as an operator lives it: a bucket, its keys, the binary, and nothing else.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { assertSameTree, snapshot, type Tree } from '../src/agent/backups/backups.testing.ts'
import { blobsIn, flip } from '../src/blobs/store.testing.ts'
import type { DamageReport } from '../src/contract/agent/agent-backups.ts'
import type { Backup } from '../src/contract/backups/backups.ts'
import { formatS3Place } from '../src/contract/offsite-place.ts'
import { createHttp, type Http } from './support/http.ts'
import { needs } from './support/needs.ts'
import { killLeftovers, spawnService } from './support/process.ts'
import { runBinary } from './support/terminal.ts'
import { until } from './support/until.ts'
import { startVersityGw, type VersityGw } from './support/versitygw.ts'

const ADMIN = `gk_admin_${randomBytes(32).toString('hex')}`
const filesOf = (dataDir: string, serverId: string) => join(dataDir, 'servers', serverId, 'files')

describe('from a bucket', needs('versitygw'), () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-bucket-'))
  const log = join(folder, 'requests.log')
  let gateway: VersityGw
  before(async () => {
    gateway = await startVersityGw({ args: ['--access-log', log] })
  })
  after(async () => {
    killLeftovers()
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  let logged = 0
  /** What was asked of the bucket since the last call. */
  function requests(): string[] {
    const text = readFileSync(log, 'utf8')
    const lines = text.slice(logged).split('\n')
    logged = text.length
    return lines.filter((line) => line.includes(' s3_'))
  }
  const operationsOf = (lines: string[]) => lines.map((line) => / s3_(\w+) /.exec(line)?.[1]).sort()

  const place = () => formatS3Place(gateway.place('castle'))
  const keysOf = () => ({
    AWS_ACCESS_KEY_ID: gateway.keys.accessKeyId,
    AWS_SECRET_ACCESS_KEY: gateway.keys.secretAccessKey,
  })
  const settings = () => ({ ...keysOf(), GAMEKEEPER_OFFSITE: place() })

  async function withService<T>(dataDir: string, work: (http: Http) => Promise<T>): Promise<T> {
    const service = await spawnService({
      ...settings(),
      GAMEKEEPER_DATA_DIR: dataDir,
      GAMEKEEPER_ADMIN_TOKEN: ADMIN,
    })
    try {
      return await work(createHttp(service.url, ADMIN))
    } finally {
      await service.kill('SIGTERM')
    }
  }

  async function recover(args: string[], env: Record<string, string>) {
    const ran = await runBinary(['backup', 'recover', ...args, '--json'], { env, cwd: folder })
    return { code: ran.code, ...JSON.parse(ran.stdout || ran.stderr) }
  }

  async function jobOf(http: Http, serverId: string, path: string, body?: object) {
    const { status, body: job } = await http.call('POST', path, body)
    assert.equal(status, 202, JSON.stringify(job))
    return await until(async () => {
      const { body: now } = await http.call('GET', `/servers/${serverId}/jobs/${job.id}`)
      return ['completed', 'failed', 'cancelled'].includes(now.status) && now
    })
  }

  /** While the disk has everything: what is damaged in the bucket is named, and is put right by itself. */
  async function repairIn(http: Http, serverId: string, backupIds: string[]): Promise<void> {
    const verify = async () => {
      const found: DamageReport[] = []
      for (const id of backupIds)
        found.push(...(await jobOf(http, serverId, `/backups/${serverId}/${id}/verify?offsite=true`)).result.damage)
      return found
    }
    const folders = ['packs', 'index', 'parts', 'manifests']
    // The largest pack is the one with a thousand small files, all of which its byte spoils.
    const largest = (paths: string[]) => paths.sort((a, b) => statSync(b).size - statSync(a).size)[0] ?? ''
    const spoilt = folders.map((each) => largest(blobsIn(gateway.dir, `castle/${each}`)))
    const before = spoilt.map((path) => readFileSync(path))
    for (const path of spoilt) flip(path, 100)
    const found = await verify()
    assert.ok(found.every(({ isOffsite }) => isOffsite))
    for (const path of spoilt)
      assert.ok(
        found.some(({ blob }) => path.endsWith(blob)),
        `${path} is not named`,
      )
    await until(async () => spoilt.every((path, index) => readFileSync(path).equals(before[index] ?? Buffer.of())))
    await until(async () => (await http.call('GET', '/activity?event=offsite.repaired')).body.data.length > 0)
    assert.deepEqual(await verify(), [])
  }

  async function restored(http: Http, dataDir: string, serverId: string, backupId: string): Promise<Tree> {
    const request = { mode: 'replace', safetyBackup: false }
    const ended = await jobOf(http, serverId, `/backups/${serverId}/${backupId}/restore`, request)
    assert.equal(ended.status, 'completed', JSON.stringify(ended))
    return snapshot(filesOf(dataDir, serverId))
  }

  test('servers, backups and locks come back, restores read from the bucket, and what is damaged is named or healed', async () => {
    const old = join(folder, 'old')
    const trees = new Map<string, Tree>()
    const castle = await withService(old, async (http) => {
      const { id } = (await http.call('POST', '/servers', { name: 'Castle' })).body
      const root = filesOf(old, id)
      mkdirSync(join(root, 'world/empty'), { recursive: true })
      // So many that the manifests have parts.
      for (let index = 0; index < 1000; index++) writeFileSync(join(root, `world/${index}.dat`), `day ${index}`)
      for (const isLocked of [true, false]) {
        writeFileSync(join(root, 'world/region'), randomBytes(2_000_000))
        const made = await http.backup(id, { isLocked })
        assert.equal(made.status, 'completed')
        trees.set(made.id, snapshot(root))
      }
      await until(async () => {
        const { data } = (await http.call('GET', `/backups/${id}`)).body
        return data.every((backup: Backup) => backup.offsite?.state === 'stored')
      })
      await repairIn(http, id, [...trees.keys()])
      return id as string
    })
    const [locked = '', latest = ''] = trees.keys()
    rmSync(old, { recursive: true })

    const listed = await recover(['--store', place(), '--list'], keysOf())
    assert.equal(listed.code, 0, JSON.stringify(listed))
    assert.deepEqual(
      listed.servers.map(({ id, name, backups }: { id: string; name: string; backups: object[] }) => [
        id,
        name,
        backups.length,
      ]),
      [[castle, 'Castle', 2]],
    )
    const fresh = join(folder, 'new')
    const unset = await recover(['--store', place(), '--data', fresh], keysOf())
    assert.deepEqual([unset.code, unset.error.code], [1, 'not_configured'])
    const wrong = await recover(['--store', place(), '--list'], { ...keysOf(), AWS_SECRET_ACCESS_KEY: 'wrong' })
    assert.deepEqual([wrong.code, wrong.error.code], [1, 'unreachable'])
    assert.match(wrong.error.detail, /The secret of the key is wrong/)

    requests()
    const done = await recover(['--store', place(), '--data', fresh], settings())
    const asked = requests()
    for (const id of trees.keys())
      assert.ok(asked.filter((line) => line.includes(`manifests/${castle}/${id} `)).length <= 1, asked.join('\n'))
    for (const path of blobsIn(gateway.dir, 'castle/index')) {
      const name = path.slice(gateway.dir.length + 1)
      assert.ok(asked.filter((line) => line.includes(`${name} `)).length <= 1, asked.join('\n'))
    }
    assert.ok(!asked.some((line) => line.includes('castle/packs/')), asked.join('\n'))
    // Most of what is small came in it.
    assert.equal(asked.filter((line) => line.includes('s3_GetObject castle/bundles/')).length, 1, asked.join('\n'))
    assert.equal(done.code, 0, JSON.stringify(done))
    assert.deepEqual([done.recovered.servers, done.recovered.adopted.length], [[castle], 2])
    assert.ok(done.copied.bytes < 500_000, 'no pack is copied')

    await withService(fresh, async (http) => {
      await until(async () => (await http.call('GET', '/offsite')).body.mirror !== null)
      // Whose it is, how it is made, and what it holds.
      assert.deepEqual(operationsOf(requests()), ['GetObject', 'GetObject', 'ListObjectsV2'])
      const read = async (id: string) => (await http.call('GET', `/backups/${castle}/${id}`)).body
      assert.deepEqual([(await read(locked)).isLocked, (await read(latest)).isLocked], [true, false])
      for (const [id, tree] of trees) assertSameTree(await restored(http, fresh, castle, id), tree)
      assert.equal(blobsIn(join(fresh, 'backups'), 'packs').length, 0)

      const manifest = join(fresh, 'backups/manifests', castle, locked)
      const whole = readFileSync(manifest)
      rmSync(manifest)
      assert.equal((await http.call('GET', `/backups/${castle}/${locked}/files?path=/`)).status, 200)
      assert.ok(readFileSync(manifest).equals(whole))
      await until(async () => {
        const { body } = await http.call('GET', `/servers/${castle}/activity?event=backup.healed`)
        return body.data.length === 1
      })

      const verified = await jobOf(http, castle, `/backups/${castle}/${latest}/verify?offsite=true`)
      assert.deepEqual([verified.status, verified.result.damage], ['completed', []])
      const [pack = ''] = blobsIn(gateway.dir, 'castle/packs')
      flip(pack, 500_000)
      const found = []
      for (const id of trees.keys())
        found.push(...(await jobOf(http, castle, `/backups/${castle}/${id}/verify`)).result.damage)
      assert.ok(found.length > 0 && found.every(({ blob }) => pack.endsWith(blob)), JSON.stringify(found))
      flip(pack, 500_000)
      for (const id of trees.keys())
        assert.deepEqual((await jobOf(http, castle, `/backups/${castle}/${id}/verify`)).result.damage, [])

      await gateway.kill()
      const before = snapshot(filesOf(fresh, castle))
      rmSync(join(filesOf(fresh, castle), 'world/region'))
      const request = { mode: 'replace', safetyBackup: false }
      const failed = await jobOf(http, castle, `/backups/${castle}/${locked}/restore`, request)
      assert.deepEqual([failed.status, failed.error.code], ['failed', 'offsite_unreachable'])
      await gateway.start()
      assertSameTree(await restored(http, fresh, castle, latest), before)
    })
  })
})
