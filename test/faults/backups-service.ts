// The service is killed while it makes or restores a backup that was asked for over HTTP. After the next start the row
// must end as it was promised, the tree must be the one that was restored, and no backup may be lost.
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { assertSameTree, snapshot, type Tree } from '../../src/agent/backups/backups.testing.ts'
import { openEvents } from '../support/events.ts'
import { createHttp, type Http } from '../support/http.ts'
import { type ServiceProcess, spawnService } from '../support/process.ts'
import { changeTree } from './backups-tree.ts'

interface World {
  env: Record<string, string>
  token: string
  service: ServiceProcess
  http: Http
  /** The server whose files are backed up and restored, and one to look at backups in. */
  serverId: string
  checkId: string
  files(serverId: string): string
  /** The tree that each backup holds. */
  backups: Map<string, Tree>
  /** Those that restores have taken, oldest first. */
  safety: Set<string>
}

/** About as long as each takes. */
const KILL_BACKUP_WITHIN_MS = 70
const KILL_RESTORE_WITHIN_MS = 200

export async function killBackupService(rounds: number, say: (line: string) => void): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-faults-'))
  const world = await begin(dataDir)
  try {
    for (let round = 1; round <= rounds; round++) {
      for (let times = 0; times < 3; times++) changeTree(world.files(world.serverId), randomInt)
      // The first cannot restore anything yet.
      const told = round % 2 === 1 ? await killBackup(world) : await killRestore(world)
      await inspect(world)
      say(`round ${round} of ${rounds}: ${told}; ${world.backups.size} backups whole`)
    }
  } finally {
    await world.service.kill('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function begin(dataDir: string): Promise<World> {
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' }
  const service = await spawnService(env)
  const http = createHttp(service.url, token)
  const create = async (name: string) => (await http.call('POST', '/servers', { name })).body.id as string
  const [serverId, checkId] = [await create('Castle'), await create('Check')]
  const files = (id: string) => join(dataDir, 'servers', id, 'files')
  for (let times = 0; times < 6; times++) changeTree(files(serverId), randomInt)
  return { env, token, service, http, serverId, checkId, files, backups: new Map(), safety: new Set() }
}

async function killAndStart(world: World): Promise<void> {
  assert.equal(await world.service.kill('SIGKILL'), 'SIGKILL')
  world.service = await spawnService(world.env)
  world.http = createHttp(world.service.url, world.token)
}

async function killBackup(world: World): Promise<string> {
  const { serverId } = world
  const tree = snapshot(world.files(serverId))
  const made = await world.http.call('POST', `/backups/${serverId}`, {})
  assert.equal(made.status, 202)
  const address = `${world.service.url}/v1/game/backups/${serverId}/${made.body.id}`
  const seen: string[] = []
  const listening = (async () => {
    const stream = await openEvents(address, world.token)
    for (let event = await stream.next(); event; event = await stream.next()) seen.push(event.data.status)
  })().catch(() => {})
  await delay(randomInt(KILL_BACKUP_WITHIN_MS))
  await killAndStart(world)
  await listening
  const ended = await world.http.whenEnded(serverId, made.body.id)
  assert.equal(ended.status, 'completed', JSON.stringify(ended))
  world.backups.set(made.body.id, tree)
  return `killed while a backup was ${seen.at(-1) ?? 'queued'}`
}

async function killRestore(world: World): Promise<string> {
  const { serverId } = world
  const known = [...world.backups]
  const [backupId, tree] = known[randomInt(known.length)] as [string, Tree]
  const before = snapshot(world.files(serverId))
  const asked = await world.http.call('POST', `/backups/${serverId}/${backupId}/restore`, { mode: 'replace' })
  assert.equal(asked.status, 202)
  await delay(randomInt(KILL_RESTORE_WITHIN_MS))
  const { body: last } = await world.http.call('GET', `/servers/${serverId}/jobs/${asked.body.id}`)
  await killAndStart(world)
  const done = await jobEnded(world.http, serverId, asked.body.id)
  assert.equal(done.status, 'completed', JSON.stringify(done))
  assertSameTree(snapshot(world.files(serverId)), tree)
  const { safetyBackupId } = done.result as { safetyBackupId: string }
  world.backups.set(safetyBackupId, before)
  world.safety.add(safetyBackupId)
  return `killed while a restore was ${last.status}`
}

async function jobEnded(http: Http, serverId: string, jobId: string) {
  for (;;) {
    const { body } = await http.call('GET', `/servers/${serverId}/jobs/${jobId}`)
    if (body.status !== 'queued' && body.status !== 'running') return body
    await delay(20)
  }
}

/** Everything that was answered is listed, nothing hangs, and one of them is compared byte for byte. */
async function inspect({ http, serverId, checkId, files, backups, safety }: World): Promise<void> {
  const { body } = await http.call('GET', `/backups/${serverId}?limit=100`)
  const listed = new Map((body.data as { id: string; status: string }[]).map(({ id, status }) => [id, status]))
  // Of those that restores have taken, the newest three stay.
  for (const id of [...safety].slice(0, -3)) if (!listed.has(id)) backups.delete(id)
  assert.deepEqual([...listed.keys()].sort(), [...backups.keys()].sort())
  assert.deepEqual([...new Set(listed.values())], ['completed'])
  const [id, tree] = [...backups][randomInt(backups.size)] as [string, Tree]
  const verify = await http.call('POST', `/backups/${serverId}/${id}/verify`)
  const verified = await jobEnded(http, serverId, verify.body.id)
  assert.deepEqual((verified.result as { damage: unknown[] }).damage, [])
  const request = { mode: 'replace', targetServerId: checkId, safetyBackup: false }
  const restore = await http.call('POST', `/backups/${serverId}/${id}/restore`, request)
  assert.equal((await jobEnded(http, checkId, restore.body.id)).status, 'completed')
  assertSameTree(snapshot(files(checkId)), tree)
}
