// What a tenant can put into a backup: patterns and sizes that cost others nothing.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openPaths } from './support/descriptors.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { TIMES } from './support/size.ts'

after(killLeftovers)

const GIB = 1024 ** 3
/** Nearly as much as ext4 allows. It takes no space on the disk, so no quota keeps anybody from making it. */
const VAST_BYTES = 15 * 1024 * GIB
const HOLE_BYTES = 2 * GIB

async function startBackup(tenant: Tenant, body: object = {}): Promise<string> {
  const started = await tenant.call('POST', `/backups/${tenant.serverId}`, { body })
  assert.equal(started.status, 202, started.text)
  return started.body.id
}

const readBackup = (tenant: Tenant, backupId: string) => tenant.call('GET', `/backups/${tenant.serverId}/${backupId}`)

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
async function backUp(tenant: Tenant, body: object = {}): Promise<any> {
  const backupId = await startBackup(tenant, body)
  const ended = await until(async () => {
    const { body: backup } = await readBackup(tenant, backupId)
    return ['completed', 'failed'].includes(backup.status) ? backup : undefined
  })
  assert.equal(ended.status, 'completed', JSON.stringify(ended))
  return ended
}

function makeHole(path: string, bytes: number): void {
  writeFileSync(path, 'here')
  truncateSync(path, bytes)
}

const isOpenIn = (pid: number, path: string) => openPaths(pid).includes(path)

const bytesRead = (pid: number) => Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])

test('what a tenant puts into a backup costs others nothing', async (t) => {
  const scene = await openScene(t)
  const { folder } = scene.attacker
  const clear = () => {
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
  }

  await t.test('ignore patterns that make a backtracking matcher hang', async () => {
    const nested = join(folder, ...Array(120).fill('a'))
    mkdirSync(nested, { recursive: true })
    writeFileSync(join(nested, 'c'), 'kept')
    const patterns = [`${'**/a/'.repeat(12)}b`, `${'**/a/'.repeat(6500)}b`, `${'*a'.repeat(16_000)}b`, '*a'.repeat(60)]
    await attack(scene, async (attacker) => {
      for (const ignored of patterns.slice(0, TIMES === 1 ? 2 : undefined)) {
        const { fileCount } = await backUp(attacker, { ignored })
        assert.equal(fileCount, 1)
      }
    })
    clear()
  })

  await t.test('a sparse file of 15 TB is named in a warning, and no backup waits for it', async () => {
    makeHole(join(folder, 'vast'), VAST_BYTES)
    writeFileSync(join(folder, 'level'), 'kept')
    await attack(scene, async (attacker) => {
      const { warnings, fileCount } = await backUp(attacker)
      const why = `consists of so much empty space (${VAST_BYTES} bytes in all) that it is not in the backup.`
      assert.deepEqual(warnings, [`/vast ${why}`])
      assert.equal(fileCount, 1)
    })
    clear()
  })

  await t.test('a compare ends when its client leaves', async () => {
    const path = join(folder, 'hole')
    makeHole(path, HOLE_BYTES)
    const { pid } = scene.keeper
    await attack(scene, async (attacker) => {
      const { id } = await backUp(attacker)
      utimesSync(path, 0, 0)
      const before = bytesRead(pid)
      const leaving = new AbortController()
      const address = `${attacker.url}/v1/game/backups/${attacker.serverId}/compare?from=${id}`
      const headers = { authorization: `Bearer ${attacker.token}` }
      const asked = fetch(address, { headers, signal: leaving.signal })
      await Promise.race([
        until(async () => isOpenIn(pid, path)),
        asked.then(async (reply) => assert.fail(await reply.text())),
      ])
      leaving.abort()
      await assert.rejects(asked, { name: 'AbortError' })
      await until(async () => !isOpenIn(pid, path))
      const read = bytesRead(pid) - before
      assert.ok(read < HOLE_BYTES / 2, `${read} bytes were read for somebody who has left`)
    })
    clear()
  })

  await t.test('a large backup of one server is passed by a small one of another, and cancelled at once', async () => {
    for (let index = 0; index < 4; index++) makeHole(join(folder, `hole-${index}`), 15 * GIB)
    await attack(scene, async (attacker) => {
      const large = await startBackup(attacker)
      const state = async () => (await readBackup(attacker, large)).body.status
      await until(async () => (await state()) === 'running')
      await backUp(scene.victim)
      assert.equal(await state(), 'running', 'the large one was over before the small one')
      const cancelled = await attacker.call('DELETE', `/backups/${attacker.serverId}/${large}`)
      assert.ok(cancelled.status < 300, cancelled.text)
      await until(async () => (await readBackup(attacker, large)).status === 404)
      await until(async () => !readdirSync(folder).some((name) => isOpenIn(scene.keeper.pid, join(folder, name))))
    })
    clear()
  })
})
