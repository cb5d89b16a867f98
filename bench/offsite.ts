// Backups in a bucket against restic's, on the server of bench/backups and one S3 server, versitygw, on the same machine.
// What a backup costs while there is a mirror, and how much memory it takes to send a large one. `GAMEKEEPER_BENCH_OFFSITE`
// names some of the parts: peers, pairs, memory.
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MINECRAFT, makeTree } from './game-tree.ts'
import { holds, median, peakBytes, restartPeak, table } from './measure.ts'
import { discard, heat } from './support/backup-peers.ts'
import { startBackupService } from './support/backup-service.ts'
import { changeTree } from './support/change-tree.ts'
import { type BarGroup, barChart } from './support/chart.ts'
import { type CountingS3, startCountingS3 } from './support/offsite/counting-s3.ts'
import {
  backUpAndSend,
  type OffsiteRound,
  oursInRound,
  resticInRound,
  STEPS,
  type Step,
  type Steps,
} from './support/offsite/peers.ts'
import { fillWithRandom } from './support/offsite/random-files.ts'
import { settle, TICK_MS } from './support/settling.ts'

const size = (name: string, usual: number) => Number(process.env[`GAMEKEEPER_BENCH_${name}`] ?? usual)
const ROUNDS = size('ROUNDS', 3)
const PAIRS = size('PAIRS', 12)
const SENT_GB = size('GB', 10)
const MIB = 1024 ** 2
/** By then a service that has nothing to do has all that it needs in memory. */
const IDLE_MS = 5000

/** What a game that saves rewrites. */
const SAVED = { files: 40, bytes: 15_000_000, smallFiles: 0 }

const PARTS = { peers, pairs, memory }

export async function run(): Promise<boolean> {
  const wanted = process.env.GAMEKEEPER_BENCH_OFFSITE?.split(',') ?? Object.keys(PARTS)
  const held: boolean[] = []
  for (const [name, part] of Object.entries(PARTS)) {
    if (!wanted.includes(name)) continue
    const base = mkdtempSync(join(process.env.GAMEKEEPER_BENCH_DIR ?? tmpdir(), 'gamekeeper-bench-'))
    const s3 = await startCountingS3(base)
    try {
      held.push(...(await part(base, s3)))
    } finally {
      await s3.stop()
      rmSync(base, { recursive: true, force: true })
    }
  }
  return held.every(Boolean)
}

async function peers(base: string, s3: CountingS3): Promise<boolean[]> {
  const tree = join(base, 'tree')
  makeTree(tree, MINECRAFT)
  await settle()
  let changes = 0
  const change = (root: string) => changeTree({ root, seed: 100 + changes++, ...SAVED })
  const tools = { gamekeeper: oursInRound, restic: resticInRound }
  const rounds: Record<keyof typeof tools, Steps[]> = { gamekeeper: [], restic: [] }
  for (let count = 0; count < ROUNDS; count++) {
    for (const [tool, inRound] of Object.entries(tools) as [keyof typeof tools, typeof oursInRound][]) {
      const name = `round-${count}-${tool}`
      const round: OffsiteRound = { s3, name, base: join(base, name), tree, change }
      mkdirSync(round.base)
      heat(tree)
      const steps = await inRound(round)
      rounds[tool].push(steps)
      console.log(`round ${count + 1}, ${tool}: ${describe(steps)}`)
    }
  }
  const medians = { gamekeeper: mediansOf(rounds.gamekeeper), restic: mediansOf(rounds.restic) }
  report(medians)
  return judge(medians)
}

function describe(steps: Steps): string {
  const { madeSeconds, parts } = steps
  const each = STEPS.map((step) => `${step} ${cell(flat(steps, step))}`).join('; ')
  const made = madeSeconds ? `; on the disk ${JSON.stringify(madeSeconds)}` : ''
  const operations = STEPS.map((step) => `${step} ${JSON.stringify(steps[step].traffic.operations)}`).join(' ')
  return `${each}${made}${parts ? `; before the restore ${JSON.stringify(parts)}` : ''}\n  ${operations}`
}

interface Figures {
  seconds: number
  cpu: number
  requests: number
  /** Sent. */
  bytes: number
}

type Medians = Record<Step, Figures>

function flat(steps: Steps, step: Step): Figures {
  const { seconds, cpu, traffic } = steps[step]
  return { seconds, cpu, requests: traffic.requests, bytes: traffic.bytesUp }
}

function mediansOf(rounds: Steps[]): Medians {
  const of = (step: Step): Figures => {
    const all = rounds.map((steps) => flat(steps, step))
    const middle = (key: keyof Figures) => median(all.map((figures) => figures[key]))
    return { seconds: middle('seconds'), cpu: middle('cpu'), requests: middle('requests'), bytes: middle('bytes') }
  }
  return Object.fromEntries(STEPS.map((step) => [step, of(step)])) as Medians
}

const cell = ({ seconds, cpu, requests, bytes }: Figures) =>
  `${seconds.toFixed(3)} s (cpu ${cpu.toFixed(1)}), ${requests} requests, ${(bytes / 1e6).toFixed(1)} MB sent`

const TITLES: Record<Step, string> = {
  first: 'First backup, until the bucket has it',
  changed: '15 MB changed, until the bucket has it',
  list: 'List of the backups',
  restore: 'Restore from the bucket',
  fromNothing: 'Restore by a machine that has nothing, from the first command on',
  listAnew: 'List by a machine that has nothing',
}

function report(medians: Record<'gamekeeper' | 'restic', Medians>): void {
  const names = ['gamekeeper', 'restic'] as const
  table([
    [`medians of ${ROUNDS} rounds`, ...names],
    ...STEPS.map((step) => [TITLES[step], ...names.map((name) => cell(medians[name][step]))]),
  ])
  const chart = process.env.GAMEKEEPER_BENCH_CHART
  if (!chart) return
  const groups: BarGroup[] = STEPS.map((step) => ({
    title: TITLES[step],
    bars: names.map((name) => ({ name, value: medians[name][step].seconds, label: cell(medians[name][step]) })),
  }))
  writeFileSync(chart, barChart('Backups in a bucket against restic', groups))
}

function judge({ gamekeeper: ours, restic: theirs }: Record<'gamekeeper' | 'restic', Medians>): boolean[] {
  const faster = (step: Step) =>
    holds(`${TITLES[step]}: restic / ours`, theirs[step].seconds / ours[step].seconds, '>=', 2)
  const fewer = (step: Step) =>
    holds(`${TITLES[step]}, requests: ours / restic`, ours[step].requests / theirs[step].requests, '<=', 0.5)
  const judged = ['first', 'changed', 'list', 'restore', 'fromNothing'] as const
  return [...judged.map(faster), ...judged.map(fewer)]
}

/** The same backup by a service with a mirror and by one without, in turns; nothing is being sent when one begins. */
async function pairs(base: string, s3: CountingS3): Promise<boolean[]> {
  const tree = join(base, 'tree')
  makeTree(tree, MINECRAFT)
  await settle()
  const start = async (name: string, settings: Record<string, string>) => {
    const dataDir = join(base, name)
    mkdirSync(dataDir)
    const running = await startBackupService(dataDir, settings)
    const { id: serverId } = await running.client.servers.create({ name })
    const files = running.filesOf(serverId)
    rmdirSync(files)
    if (name === 'plain') cpSync(tree, files, { recursive: true, preserveTimestamps: true })
    else renameSync(tree, files)
    return { ...running, serverId, files, seconds: [] as number[] }
  }
  const plain = await start('plain', {})
  const mirrored = await start('mirrored', { ...s3.env, GAMEKEEPER_OFFSITE: s3.placeOf('pairs') })
  try {
    const backUp = {
      plain: async () => (await plain.backUp(plain.serverId)).seconds,
      mirrored: async () => (await backUpAndSend(mirrored, mirrored.serverId)).made,
    }
    console.log(
      `first backups: ${(await backUp.mirrored()).toFixed(3)} s with a mirror, ${(await backUp.plain()).toFixed(3)} s without`,
    )
    for (let pair = 0; pair < PAIRS; pair++) {
      for (const { files } of [plain, mirrored]) changeTree({ root: files, seed: 300 + pair, ...SAVED })
      await settle(TICK_MS)
      const both = { plain, mirrored }
      const order = pair % 2 ? (['plain', 'mirrored'] as const) : (['mirrored', 'plain'] as const)
      for (const name of order) both[name].seconds.push(await backUp[name]())
    }
  } finally {
    await Promise.all([plain.stop(), mirrored.stop()])
  }
  const [without, with_] = [median(plain.seconds), median(mirrored.seconds)]
  const all = ({ seconds }: { seconds: number[] }) => seconds.map((value) => value.toFixed(3)).join(' ')
  table([
    [`15 MB changed, ${PAIRS} pairs`, 'median, s', 'each'],
    ['without a mirror', without, all(plain)],
    ['with a mirror', with_, all(mirrored)],
  ])
  return [holds('a backup with a mirror to one without', with_ / without, '<=', 1.1)]
}

/** Two services on one store, each just started: one that has nothing to do, and one that sends all of it. */
async function memory(base: string, s3: CountingS3): Promise<boolean[]> {
  const dataDir = join(base, 'data')
  mkdirSync(dataDir)
  const made = await startBackupService(dataDir)
  let [serverId, backupId, files] = ['', '', '']
  try {
    serverId = (await made.client.servers.create({ name: 'Large' })).id
    files = made.filesOf(serverId)
    fillWithRandom(files, SENT_GB * 1e9)
    backupId = (await made.backUp(serverId)).backup.id
  } finally {
    await made.stop()
  }
  discard(files)
  const idle = await startBackupService(dataDir)
  let before = 0
  try {
    await delay(IDLE_MS)
    restartPeak(idle.service.pid)
    await delay(IDLE_MS)
    before = peakBytes(idle.service.pid)
  } finally {
    await idle.stop()
  }
  const sending = await startBackupService(dataDir, { ...s3.env, GAMEKEEPER_OFFSITE: s3.placeOf('memory') })
  try {
    const begun = performance.now()
    while ((await sending.client.backups.read(serverId, backupId)).offsite?.state !== 'stored') await delay(250)
    const seconds = (performance.now() - begun) / 1000
    const peak = peakBytes(sending.service.pid)
    const { requests, bytesUp } = s3.traffic()
    table([
      [`sending ${SENT_GB} GB`, 'MiB'],
      ['the service, idle', before / MIB],
      [`its peak while sending, ${seconds.toFixed(0)} s, ${requests} requests`, peak / MIB],
      ['sent', bytesUp / MIB],
    ])
    return [holds(`memory added by sending ${SENT_GB} GB, MiB`, (peak - before) / MIB, '<=', 128)]
  } finally {
    await sending.stop()
  }
}
