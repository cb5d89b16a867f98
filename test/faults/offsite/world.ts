// A service with a bucket behind a proxy, what it was told to do, and what it has said.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Tree } from '../../../src/agent/backups/backups.testing.ts'
import { blobsIn, namesIn } from '../../../src/blobs/store.testing.ts'
import type { Backup } from '../../../src/contract/backups/backups.ts'
import { formatS3Place } from '../../../src/contract/offsite-place.ts'
import { sqliteFile } from '../../../src/control/db/database.ts'
import { temporaryDirectory } from '../../support/daemons.ts'
import { createHttp, type Http } from '../../support/http.ts'
import { type ServiceProcess, spawnService } from '../../support/process.ts'
import { type S3Proxy, startS3Proxy } from '../../support/s3-proxy.ts'
import { startVersityGw, type VersityGw } from '../../support/versitygw.ts'
import type { Random } from '../history/random.ts'

const PREFIX = 'castle'
const GIVE_UP_MS = 120_000
const HOURS_AGO_MS = 2 * 3600_000
const SENT_FOLDERS = ['packs', 'index', 'parts', 'manifests']

export interface World {
  readonly gateway: VersityGw
  readonly proxy: S3Proxy
  readonly random: Random
  readonly folder: string
  /** Of whatever uses the bucket, wherever below it and with whatever data. */
  envOf(prefix: string, dataDir: string): Record<string, string>
  readonly key: Uint8Array | null
  readonly hasManyFiles: boolean
  dataDir: string
  serverId: string
  /** The files of the server. */
  files(): string
  http: Http
  /** The tree that each backup holds, by its name. */
  readonly trees: Map<string, Tree>
  /** Of which a service has said that they are off-site. */
  readonly stored: Set<string>
  /** Whose deletion was asked for. */
  readonly deleted: Set<string>
  /** SIGKILL, at any time; where it is not yet up, as soon as it is. */
  kill(): Promise<void>
  readonly isKilled: boolean
  start(settings?: Record<string, string>): Promise<void>
  stop(): Promise<void>
}

export interface WorldOptions {
  isEncrypted: boolean
  /** So many small ones that manifests have parts, which they share. */
  hasManyFiles?: boolean
}

export async function createWorld(random: Random, options: WorldOptions): Promise<World> {
  const directory = temporaryDirectory('faults-offsite')
  const gateway = await startVersityGw()
  const proxy = await startS3Proxy(gateway.url)
  const token = `gk_admin_${randomBytes(32).toString('hex')}`
  const key = options.isEncrypted ? randomBytes(32) : null
  let starting: Promise<ServiceProcess> | undefined
  let isKilled = true
  const world: World = {
    gateway,
    proxy,
    random,
    folder: directory.path,
    envOf: (prefix, dataDir) => ({
      GAMEKEEPER_DATA_DIR: dataDir,
      GAMEKEEPER_ADMIN_TOKEN: token,
      GAMEKEEPER_RATE_LIMIT: '0',
      GAMEKEEPER_OFFSITE: formatS3Place(gateway.place(prefix, proxy.url)),
      AWS_ACCESS_KEY_ID: gateway.keys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: gateway.keys.secretAccessKey,
      ...(key ? { GAMEKEEPER_BACKUP_KEY: key.toString('hex') } : {}),
    }),
    key,
    hasManyFiles: options.hasManyFiles ?? false,
    dataDir: join(directory.path, 'data'),
    serverId: '',
    files: () => join(world.dataDir, 'servers', world.serverId, 'files'),
    http: createHttp('', token),
    trees: new Map(),
    stored: new Set(),
    deleted: new Set(),
    get isKilled() {
      return isKilled
    },
    async kill() {
      isKilled = true
      await (await starting?.catch(() => undefined))?.kill('SIGKILL')
    },
    async start(settings = {}) {
      isKilled = false
      starting = spawnService({ ...world.envOf(PREFIX, world.dataDir), ...settings })
      world.http = createHttp((await starting).url, token)
    },
    async stop() {
      await world.kill()
      await proxy.stop()
      await gateway.stop()
      directory.remove()
    },
  }
  return world
}

/** Below the bucket. */
export const liveDir = ({ gateway }: World) => join(gateway.dir, PREFIX)
export const LIVE_PREFIX = PREFIX

/** What a service does until it is killed: nothing that fails because of that is a failure. */
export async function untilKilled(world: World, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!world.isKilled) throw error
  }
}

/** The backups as the service lists them. What it says of the bucket is remembered. */
export async function look({ http, serverId, stored }: World): Promise<Backup[]> {
  const { status, body } = await http.call('GET', `/backups/${serverId}?limit=100`)
  assert.equal(status, 200, JSON.stringify(body))
  const backups = body.data as Backup[]
  for (const { name, offsite } of backups) if (offsite?.state === 'stored') stored.add(name)
  return backups
}

/** Until the backups are so, which they are before long where nothing is in the way. */
export async function untilBackups(world: World, isSo: (backups: Backup[]) => boolean): Promise<Backup[]> {
  const deadline = Date.now() + GIVE_UP_MS
  for (;;) {
    const backups = await look(world)
    if (isSo(backups)) return backups
    if (world.isKilled) throw new Error('killed')
    const { body: offsite } = await world.http.call('GET', '/offsite')
    if (Date.now() > deadline) assert.fail(`still not so: ${JSON.stringify({ backups, offsite }, null, 1)}`)
    // As somebody would who has put right what was wrong and does not wait for the next attempt, and who meant to delete.
    if (offsite.activity === 'waiting') await world.http.call('POST', '/offsite/prune', { bytes: 0 })
    if (offsite.surplus?.reason === 'shrinks')
      await world.http.call('POST', '/offsite/prune', { bytes: offsite.surplus.bytes })
    await delay(50)
  }
}

export const areMade = (backups: Backup[]) => backups.every(({ status }) => status === 'completed')
export const areStored = (backups: Backup[]) => backups.every(({ offsite }) => offsite?.state === 'stored')

/** The bucket has them, and none that was deleted. */
export function isMirrored(world: World, backups: Backup[]): boolean {
  const ids = backups.map(({ id }) => id).sort()
  return areMade(backups) && areStored(backups) && namesIn(liveDir(world), 'manifests').join() === ids.join()
}

/** What would take an hour until it may be reclaimed, and ten minutes until it is. While no service is up. */
export function passHours({ dataDir }: World): void {
  const then = new Date(Date.now() - HOURS_AGO_MS)
  for (const folder of ['packs', 'away'])
    for (const path of blobsIn(join(dataDir, 'backups'), folder)) utimesSync(path, then, then)
  if (!existsSync(sqliteFile(dataDir))) return
  const db = new DatabaseSync(sqliteFile(dataDir))
  db.exec("UPDATE jobs SET due_at = 0 WHERE kind = 'backups.reclaim' AND status = 'queued'")
  db.close()
}

/**
 * Watches that nothing is sent which the bucket has already, as of now. What it has in another size than the disk was not
 * all kept.
 */
export function watchSending(world: World): { assertNothingTwice(): void } {
  const sizes = (dir: string) =>
    new Map(SENT_FOLDERS.flatMap((folder) => blobsIn(dir, folder)).map((path) => [basename(path), statSync(path).size]))
  const here = sizes(join(world.dataDir, 'backups'))
  const whole = [...sizes(liveDir(world))].filter(([name, size]) => (here.get(name) ?? size) === size)
  const known = new Set(whole.map(([name]) => name))
  const from = world.proxy.seen.length
  return {
    assertNothingTwice() {
      const sent = world.proxy.seen.slice(from).filter(({ method }) => method === 'PUT')
      const names = sent.map(({ url }) => basename(url.split('?')[0] ?? ''))
      assert.deepEqual(
        names.filter((name) => known.has(name)),
        [],
        'sent once more',
      )
    },
  }
}

/** A data directory in which nothing is. */
export function emptyFolder({ folder }: World, name: string): string {
  const path = join(folder, name)
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path)
  assert.deepEqual(readdirSync(path), [])
  return path
}
