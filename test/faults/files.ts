// The service is killed while files are uploaded, written, copied, moved, deleted, brought back, packed and unpacked.
// Afterwards the tree holds whole files only, everything that was answered is in it or in the trash, nothing lies about in
// staging but uploads that can be gone on with, and the account of the quota is what the disk says.
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type ServiceProcess, spawnService } from '../support/process.ts'
import { until } from '../support/until.ts'
import { labelOf } from './files-content.ts'
import { call, resumeUpload, type Session, type World, workUntilDead } from './files-work.ts'

const WORKERS = 5
/** What piles up is taken away then, so that late rounds are as quick as early ones. */
const FILES_MAX = 400
/** Killed when so much work has begun at most, and within so many milliseconds of its beginning. */
const MOST_WORK = 60
const INTO_IT_MS = 40

export async function run(rounds: number, say: (line: string) => void = () => {}): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gamekeeper-faults-'))
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const env = { GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_ADMIN_TOKEN: token, GAMEKEEPER_RATE_LIMIT: '0' }
  const world: World = { promised: new Set(), nextLabel: 1, uploads: [], answers: {} }
  let service = await spawnService(env)
  try {
    const { body } = await call(sessionOf(service, token, ''), 'POST', '/servers', {
      name: 'Castle',
      limits: { diskBytes: 2 ** 40 },
    })
    for (let round = 1; round <= rounds; round++) {
      await killWhileWorking(sessionOf(service, token, body.id), service, world)
      service = await spawnService(env)
      const session = sessionOf(service, token, body.id)
      const found = await check(session, join(dataDir, 'servers', body.id), world)
      say(`round ${round} of ${rounds}: ${found.files} files and ${found.trashed} in the trash, all whole, none lost`)
      if (found.files + found.trashed > FILES_MAX) await clear(session, world)
    }
    say(`answered: ${JSON.stringify(world.answers)}`)
  } finally {
    await service.kill('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function sessionOf(service: ServiceProcess, token: string, serverId: string): Session {
  const { child, url } = service
  return { url, token, serverId, isDead: () => child.killed || child.exitCode !== null, onBegin: () => {} }
}

async function killWhileWorking(session: Session, service: ServiceProcess, world: World): Promise<void> {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  let left = randomInt(WORKERS, MOST_WORK)
  const onBegin = () => {
    if (--left === 0) resolve()
  }
  const working = Promise.all(Array.from({ length: WORKERS }, () => workUntilDead({ ...session, onBegin }, world)))
  await Promise.race([begun, working])
  await delay(randomInt(INTO_IT_MS))
  assert.equal(service.child.exitCode, null, `it died by itself: ${service.output()}`)
  await service.kill('SIGKILL')
  await working
}

interface Found {
  path: string
  content: Buffer
}

async function check(session: Session, root: string, world: World): Promise<{ files: number; trashed: number }> {
  await jobsAreOver(session)
  for (const upload of world.uploads.splice(0)) await resumeUpload(session, world, upload)
  checkStaging(join(root, 'staging'))
  const [files, trashed] = [filesIn(join(root, 'files')), filesIn(join(root, 'trash'))]
  const labels = new Set<string>()
  for (const { path, content } of [...files, ...trashed]) {
    if (isArchive(content)) continue
    const label = labelOf(content)
    assert.ok(label, `half a file: ${path}, ${content.length} bytes, ${content.subarray(0, 40).toString('latin1')}`)
    labels.add(label)
  }
  for (const label of world.promised) assert.ok(labels.has(label), `${label} was answered and is gone`)
  await checkAccount(session, root)
  const { body } = await call(session, 'GET', '/activity/verify')
  assert.equal(body.intact, true)
  return { files: files.length, trashed: trashed.length }
}

/** Work that was under way is done again after a restart. In this order, since what is queued comes to run. */
async function jobsAreOver(session: Session): Promise<void> {
  for (const status of ['queued', 'running']) {
    await until(async () => {
      const { body } = await call(session, 'GET', `/servers/${session.serverId}/jobs?status=${status}`)
      return body.data.length === 0
    })
  }
}

/** Uploads that are not finished keep their bytes; those that are keep a record, for who missed the answer. */
function checkStaging(staging: string): void {
  const left = readdirSync(staging)
  assert.deepEqual(
    left.filter((name) => !/^(part-upl_[0-9a-z]+(\.json)?|done-upl_[0-9a-z]+\.json)$/.test(name)),
    [],
    'temporary files are left',
  )
  for (const name of left.filter((each) => !each.endsWith('.json')))
    assert.ok(left.includes(`${name}.json`), `${name} belongs to nobody`)
}

const BLOCK = 4096

async function checkAccount(session: Session, root: string): Promise<void> {
  const { body } = await call(session, 'GET', `/files/${session.serverId}/usage`)
  const seen = new Set<bigint>()
  assert.equal(body.trashBytes, spaceOf(join(root, 'trash'), seen), 'the account of the trash')
  assert.equal(body.usedBytes, body.trashBytes + spaceOf(join(root, 'files'), seen), 'the account')
  const entries = entriesIn(join(root, 'trash')).length + entriesIn(join(root, 'files')).length
  assert.equal(body.usedEntries, entries, 'the account of entries')
  assert.equal(body.reservedBytes, unfinishedBytes(join(root, 'staging')), 'what is reserved')
}

/** As du counts: blocks, and what has several names once. Of the folder itself what it takes beyond its first block. */
function spaceOf(folder: string, seen: Set<bigint>): number {
  let bytes = Math.max(0, lstatSync(folder).blocks * 512 - BLOCK)
  for (const path of entriesIn(folder)) {
    const { ino, blocks } = lstatSync(path, { bigint: true })
    if (!seen.has(ino)) bytes += Number(blocks) * 512
    seen.add(ino)
  }
  return bytes
}

function unfinishedBytes(staging: string): number {
  const unfinished = readdirSync(staging)
    .filter((name) => /^part-.*\.json$/.test(name))
    .map((name) => JSON.parse(readFileSync(join(staging, name), 'utf8')) as { sizeBytes: number })
  return unfinished.reduce((sum, { sizeBytes }) => sum + Math.ceil(sizeBytes / BLOCK) * BLOCK, 0)
}

/** Everything that has a name below the folder. */
const entriesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => join(entry.parentPath, entry.name))

function pathsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !(entry.name === 'record.json' && entry.parentPath.includes('/trash/')))
    .map((entry) => join(entry.parentPath, entry.name))
}

const filesIn = (folder: string): Found[] => pathsIn(folder).map((path) => ({ path, content: readFileSync(path) }))

/** A tar that is whole: it begins with a header, and ends with two empty blocks. */
function isArchive(content: Buffer): boolean {
  const isTar = content.length >= 1024 && content.subarray(257, 262).toString('latin1') === 'ustar'
  return isTar && content.length % 512 === 0 && content.subarray(-1024).every((byte) => byte === 0)
}

async function clear(session: Session, world: World): Promise<void> {
  const { body } = await call(session, 'GET', `/files/${session.serverId}?limit=100`)
  const names = body.data.map((entry: { name: string }) => entry.name)
  if (names.length > 0) await call(session, 'DELETE', `/files/${session.serverId}`, { files: names })
  await call(session, 'DELETE', `/files/${session.serverId}/trash`)
  world.promised.clear()
}
