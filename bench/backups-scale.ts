// Whether backups stay cheap as servers and stores grow: the memory that a server of 1,000,000 small files takes, what
// the 101st backup of 100,000 files costs beside the 2nd, and how long it takes to give the space of 50 backups back.
// The service is a process of its own and is driven over HTTP. It waits ten minutes before it gives space back and
// spares packs younger than an hour, so that last step alone is the engine's, called directly on the same store.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startAgent } from '../src/agent/backups/backups.testing.ts'
import type { Backup } from '../src/contract/backups/backups.ts'
import { changeManyFiles, makeManyFiles } from './many-files.ts'
import { holds, median, peakBytes, restartPeak, table } from './measure.ts'
import { initRestic, sizeOf } from './support/backup-peers.ts'
import { type BackupService, startBackupService } from './support/backup-service.ts'
import { settle } from './support/settling.ts'

const MIB = 1024 ** 2
const POLL_MS = 20
/** Of how many backups at either end of the chain the median is taken. */
const AT_EITHER_END = 3

export interface ScaleShape {
  /** 0 leaves the part out. */
  manyFiles: number
  chainFiles: number
  chain: number
  changed: number
  deleted: number
  /** How long its files are left alone; a minute by default, as `SETTLED_MS` says. */
  settleMs?: number
  /** Backups that restic makes before half of them are pruned; 0 leaves it out. */
  peerChain: number
}

const size = (name: string, usual: number) => Number(process.env[`GAMEKEEPER_BENCH_${name}`] ?? usual)

export async function run(
  shape: ScaleShape = {
    manyFiles: size('MANY_FILES', 1_000_000),
    chainFiles: size('CHAIN_FILES', 100_000),
    chain: size('CHAIN', 101),
    changed: size('CHANGED', 200),
    deleted: size('DELETED', 50),
    peerChain: size('PEER_CHAIN', 10),
  },
): Promise<boolean> {
  const held: boolean[] = []
  if (shape.manyFiles > 0) held.push(...(await inFolder((base) => manyFiles(base, shape))))
  if (shape.chainFiles > 0) held.push(...(await inFolder((base) => chain(base, shape))))
  return held.every(Boolean)
}

async function inFolder<T>(work: (base: string) => Promise<T>): Promise<T> {
  const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
  try {
    return await work(base)
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

/** Each step in a service that has just been started: what an earlier one left in memory is not its own. */
async function manyFiles(dataDir: string, { manyFiles: count, settleMs }: ScaleShape): Promise<boolean[]> {
  const steps: { name: string; seconds: number; peak: number }[] = []
  const step = async (name: string, work: (running: BackupService) => Promise<unknown>) => {
    const running = await startBackupService(dataDir)
    try {
      const opened = peakBytes(running.service.pid)
      restartPeak(running.service.pid)
      const begun = performance.now()
      await work(running)
      const peak = Math.max(opened, peakBytes(running.service.pid))
      steps.push({ name, seconds: (performance.now() - begun) / 1000, peak })
    } finally {
      await running.stop()
    }
  }
  let [serverId, otherId, backupId] = ['', '', '']
  let files = ''
  await step('idle', async ({ client, filesOf }) => {
    // The directories come on top of the files.
    const limits = { entries: 2 * count }
    serverId = (await client.servers.create({ name: 'Many files', limits })).id
    otherId = (await client.servers.create({ name: 'Restored', limits })).id
    files = filesOf(serverId)
  })
  makeManyFiles(files, count)
  await settle(settleMs)
  await step('first backup', async ({ backUp }) => {
    backupId = (await backUp(serverId)).backup.id
  })
  await step('nothing changed', ({ backUp }) => backUp(serverId))
  await step('restore into another server', ({ restore }) => restore(serverId, backupId, otherId))
  table([
    [`${count} small files`, 'seconds', 'peak memory, MiB'],
    ...steps.map(({ name, seconds, peak }) => [name, seconds, peak / MIB]),
  ])
  return steps.slice(1).map(({ name, peak }) => holds(`${name}: peak memory, MiB`, peak / MIB, '<=', 384))
}

async function chain(base: string, shape: ScaleShape): Promise<boolean[]> {
  const dataDir = join(base, 'data')
  const made: { backup: Backup; seconds: number }[] = []
  const store = join(dataDir, 'backups')
  let deleted: GivenBack = { seconds: Number.NaN, before: 0, freed: 0 }
  let tree = ''
  const running = await startBackupService(dataDir)
  try {
    const { id: serverId } = await running.client.servers.create({ name: 'Long chain' })
    tree = running.filesOf(serverId)
    makeManyFiles(tree, shape.chainFiles)
    await settle(shape.settleMs)
    for (let version = 1; version <= shape.chain; version++) {
      if (version > 1) changeManyFiles(tree, shape.chainFiles, shape.changed, version)
      made.push(await running.backUp(serverId))
    }
    const before = sizeOf(store)
    const begun = performance.now()
    for (const { backup } of made.slice(0, shape.deleted)) await running.client.backups.delete(serverId, backup.id)
    const manifests = join(store, 'manifests', serverId)
    while (readdirSync(manifests).length > made.length - shape.deleted) await delay(POLL_MS)
    const seconds = (performance.now() - begun) / 1000
    deleted = { seconds, before, freed: before - sizeOf(store) }
  } finally {
    await running.stop()
  }
  const [early, late] = [made.slice(1, 1 + AT_EITHER_END), made.slice(-AT_EITHER_END)]
  const typical = (some: typeof made) => median(some.map(({ seconds }) => seconds))
  const reclaimed = await reclaim(dataDir, store)
  const pruned = shape.peerChain > 0 ? pruneWithRestic(base, tree, shape) : undefined
  table([
    [`${shape.chainFiles} files, ${shape.changed} changed each time`, 'seconds', 'MiB given back', 'MiB before'],
    ['first backup', typical(made.slice(0, 1)), '', ''],
    [`2nd and on, median of ${early.length}`, typical(early), '', ''],
    [`up to number ${made.length}, median of ${late.length}`, typical(late), '', ''],
    given(`deleting ${shape.deleted} backups, until gone from the store`, deleted),
    given('giving the space of their blocks back', reclaimed),
    ...(pruned ? [given(`restic forget --prune of half of ${shape.peerChain}`, pruned)] : []),
  ])
  return [holds(`backup ${made.length} to the 2nd`, typical(late) / typical(early), '<=', 1.5)]
}

const given = (name: string, { seconds, freed, before }: GivenBack) => [name, seconds, freed / MIB, before / MIB]

interface GivenBack {
  seconds: number
  before: number
  freed: number
}

async function reclaim(dataDir: string, store: string): Promise<GivenBack> {
  const agent = await startAgent(dataDir)
  try {
    const before = sizeOf(store)
    const begun = performance.now()
    await agent.run({ kind: 'backups.reclaim' })
    const seconds = (performance.now() - begun) / 1000
    return { seconds, before, freed: before - sizeOf(store) }
  } finally {
    await agent.stop()
  }
}

/** The same tree and changes of the same kind; a shorter chain, since making it takes restic long. */
function pruneWithRestic(base: string, tree: string, shape: ScaleShape): GivenBack {
  const { repository, command: restic } = initRestic(base)
  for (let version = 1; version <= shape.peerChain; version++) {
    changeManyFiles(tree, shape.chainFiles, shape.changed, 1000 + version)
    restic('backup', tree)
  }
  const before = sizeOf(repository)
  const begun = performance.now()
  restic('forget', '--prune', '--keep-last', String(shape.peerChain >> 1))
  const seconds = (performance.now() - begun) / 1000
  return { seconds, before, freed: before - sizeOf(repository) }
}
