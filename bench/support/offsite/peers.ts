// One round of each who keeps backups in a bucket: a first backup with all that is sent, one after a game has saved, the
// list, and a restore by a machine that has nothing of its own.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { withoutSettings } from '../../../test/support/process.ts'
import { MINECRAFT, makeTree, type TreeShape } from '../../game-tree.ts'
import { cpuSeconds, cpuSecondsOfEnded, median } from '../../measure.ts'
import { discard, heat } from '../backup-peers.ts'
import { type BackupService, startBackupService } from '../backup-service.ts'
import { settle, TICK_MS } from '../settling.ts'
import { type CountingS3, sumOf, type Traffic } from './counting-s3.ts'

export const STEPS = ['first', 'changed', 'list', 'restore', 'fromNothing', 'listAnew'] as const
export type Step = (typeof STEPS)[number]

export interface Measured {
  seconds: number
  /** Processor time, that of the S3 server included. */
  cpu: number
  traffic: Traffic
}

export type Steps = Record<Step, Measured> & {
  /** Of ours: until the backup was complete on the disk. */
  madeSeconds?: Partial<Record<Step, number>>
  /** Of ours: what comes before the restore on a machine that has nothing. */
  parts?: { recover: number; start: number }
}

export interface OffsiteRound {
  s3: CountingS3
  /** Of this round. */
  name: string
  base: string
  tree: string
  change(folder: string): void
}

const CLI = fileURLToPath(new URL('../../../bin/gamekeeper.js', import.meta.url))
const WARM_UPS = 6
const SMALL: TreeShape = { regionFiles: 4, regionBytes: MINECRAFT.regionBytes, smallFiles: 500 }
const POLL_MS = 10
const LISTS = 5
const LOGGED_MS = 200

/** From the request until the service says that the bucket has it. */
export async function backUpAndSend(
  { client, backUp }: Pick<BackupService, 'client' | 'backUp'>,
  serverId: string,
): Promise<{ backupId: string; made: number; stored: number }> {
  const begun = performance.now()
  const { backup, seconds: made } = await backUp(serverId)
  for (;;) {
    const { offsite } = await client.backups.read(serverId, backup.id)
    if (offsite?.state === 'failed') throw new Error(`it was not sent: ${JSON.stringify(offsite)}`)
    if (offsite?.state === 'stored') break
    await delay(POLL_MS)
  }
  return { backupId: backup.id, made, stored: (performance.now() - begun) / 1000 }
}

export async function oursInRound({ s3, name, base, tree, change }: OffsiteRound): Promise<Steps> {
  const dataDir = join(base, 'data')
  mkdirSync(dataDir)
  const place = s3.placeOf(`${name}/ours`)
  const settings = { ...s3.env, GAMEKEEPER_OFFSITE: place }
  const running = await startBackupService(dataDir, settings)
  const { client, filesOf, stop } = running
  const { id: serverId } = await client.servers.create({ name: 'Bench' })
  const { id: smallId } = await client.servers.create({ name: 'Small' })
  const files = filesOf(serverId)
  rmdirSync(files)
  renameSync(tree, files)
  const restored = join(base, 'restored')
  try {
    for (let count = 0; count < WARM_UPS; count++) {
      makeTree(filesOf(smallId), SMALL, 2 + count)
      await backUpAndSend(running, smallId)
    }
    await settle(TICK_MS)
    const sends: Awaited<ReturnType<typeof backUpAndSend>>[] = []
    const send = async () => {
      const sent = await backUpAndSend(running, serverId)
      sends.push(sent)
      return sent.stored
    }
    const { pid } = running.service
    const first = await timed(s3, send, pid)
    change(files)
    await settle(TICK_MS)
    const changed = await timed(s3, send, pid)
    const list = await timed(s3, async () => {
      const times: number[] = []
      for (let count = 0; count < LISTS; count++) times.push(await inSeconds(() => client.backups.list(serverId)))
      return median(times)
    })
    const [sent, again] = sends
    if (!sent || !again) throw new Error('nothing was sent')
    await stop()
    heat(s3.dirOf(name))
    const restore = await restoreElsewhere({
      s3,
      settings,
      place,
      dataDir: restored,
      serverId,
      backupId: again.backupId,
    })
    execFileSync('diff', ['-rq', files, join(restored, 'servers', serverId, 'files')], { stdio: 'inherit' })
    const listAnew = await timed(s3, () =>
      inSeconds(async () => cli(settings, ['backup', 'recover', '--store', place, '--list', '--json'])),
    )
    const madeSeconds = { first: sent.made, changed: again.made }
    return { first, changed, list, listAnew, ...restore, madeSeconds }
  } finally {
    await stop()
    renameSync(files, tree)
    discard(dataDir, s3.dirOf(name))
    if (existsSync(restored)) discard(restored)
  }
}

/** On a machine that has only the keys: the restore alone, and everything from the first command on. */
export async function restoreElsewhere(from: {
  s3: CountingS3
  settings: Record<string, string>
  place: string
  dataDir: string
  serverId: string
  backupId: string
}): Promise<Pick<Steps, 'restore' | 'fromNothing' | 'parts'>> {
  const { s3, settings, place, dataDir, serverId, backupId } = from
  const recover = ['backup', 'recover', '--store', place, '--data', dataDir, '--json']
  const recovered = await timed(s3, () => inSeconds(async () => cli(settings, recover)))
  const begun = performance.now()
  const running = await startBackupService(dataDir, settings)
  try {
    // It looks at the bucket first, to find out what it has to send.
    while ((await running.client.offsite.read()).mirror === null) await delay(POLL_MS)
    const start = (performance.now() - begun) / 1000
    const { pid } = running.service
    const startCpu = cpuSeconds(pid)
    const startTraffic = await settledTraffic(s3)
    const restore = await timed(s3, () => running.restore(serverId, backupId), pid)
    const fromNothing = {
      seconds: recovered.seconds + start + restore.seconds,
      cpu: recovered.cpu + startCpu + restore.cpu,
      traffic: sumOf([recovered.traffic, startTraffic, restore.traffic]),
    }
    return { restore, fromNothing, parts: { recover: recovered.seconds, start } }
  } finally {
    await running.stop()
  }
}

export async function resticInRound({ s3, name, base, tree, change }: OffsiteRound): Promise<Steps> {
  const repository = `s3:${s3.url}/${s3.bucket}/${name}/restic`
  const cache = join(base, 'restic-cache')
  const restored = join(base, 'restic-restored')
  const env = { ...process.env, ...s3.env, RESTIC_PASSWORD: 'bench', RESTIC_CACHE_DIR: cache }
  const command = (...args: string[]) =>
    timed(s3, () => inSeconds(async () => execFileSync('restic', ['-q', '-r', repository, ...args], { env })))
  await command('init')
  // As ours: what a new machine has to read is the same then.
  const small = join(base, 'small')
  mkdirSync(small)
  for (let count = 0; count < WARM_UPS; count++) {
    makeTree(small, SMALL, 2 + count)
    await command('backup', small)
  }
  const first = await command('backup', tree)
  change(tree)
  await settle(TICK_MS)
  const changed = await command('backup', tree)
  const list = await command('snapshots')
  heat(s3.dirOf(name))
  rmSync(cache, { recursive: true })
  const restore = await command('restore', 'latest', '--target', restored)
  rmSync(cache, { recursive: true })
  const listAnew = await command('snapshots')
  discard(restored, small, s3.dirOf(name))
  return { first, changed, list, restore, fromNothing: restore, listAnew }
}

function cli(settings: Record<string, string>, args: string[]): void {
  execFileSync(process.execPath, [CLI, ...args], { env: { ...withoutSettings(), ...settings } })
}

/** `pid`: of who else works, unless it begins and ends meanwhile. */
async function timed(s3: CountingS3, work: () => Promise<number>, pid?: number): Promise<Measured> {
  const used = () => cpuSeconds(s3.pid) + cpuSecondsOfEnded() + (pid === undefined ? 0 : cpuSeconds(pid))
  await settledTraffic(s3)
  const before = used()
  const seconds = await work()
  return { seconds, cpu: used() - before, traffic: await settledTraffic(s3) }
}

/** The S3 server writes a request down after it has answered. */
async function settledTraffic(s3: CountingS3): Promise<Traffic> {
  await delay(LOGGED_MS)
  return s3.traffic()
}

async function inSeconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return (performance.now() - begun) / 1000
}
