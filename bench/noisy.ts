// The p99 of a quiet tenant's requests while a noisy one does what costs most, at the limit of its rate: one row for each
// way of being noisy. Everything in a row is measured on a service of its own.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnService } from '../test/support/process.ts'
import { table } from './measure.ts'
import { type NoiseReport, prepareNoise } from './support/noise.ts'
import { NOISES } from './support/noises.ts'
import { type QuietReport, startQuiet } from './support/quiet.ts'
import { mintTenant } from './support/tenants.ts'

const RATE_LIMIT = 6000
const ALONE_MS = Number(process.env.GAMEKEEPER_BENCH_SECONDS ?? 10) * 1000
const TIMES_MAX = 3
const P99_MAX_MS = 250

interface Row {
  name: string
  alone: QuietReport
  noisy: QuietReport
  noise: NoiseReport
}

/** `GAMEKEEPER_BENCH_NOISES=searches,deep paths` measures those alone. */
export async function run(): Promise<boolean> {
  const wanted = process.env.GAMEKEEPER_BENCH_NOISES?.split(',')
  const rows: Row[] = []
  for (const name of Object.keys(NOISES)) {
    if (wanted && !wanted.includes(name)) continue
    const row = await measure(name)
    rows.push(row)
    console.log(`${name}: alone ${text(row.alone)}; beside it ${text(row.noisy)}`)
  }
  table([
    ['while the noisy one does', 'alone, p99 ms', 'beside it', 'ratio', 'slowest', 'its requests', 'refused', ''],
    ...rows.map(({ name, alone, noisy, noise }) => [
      name,
      alone.p99Ms,
      noisy.p99Ms,
      noisy.p99Ms / alone.p99Ms,
      noisy.slowestMs,
      noise.sent,
      noise.refused,
      isHeld(alone, noisy) ? 'holds' : 'FAILS',
    ]),
  ])
  console.log(`the bar: at most ${TIMES_MAX} times its p99 alone, and never above ${P99_MAX_MS} ms`)
  return rows.every(({ alone, noisy }) => isHeld(alone, noisy))
}

const isHeld = (alone: QuietReport, noisy: QuietReport) =>
  noisy.failed === 0 && noisy.p99Ms <= TIMES_MAX * alone.p99Ms && noisy.p99Ms <= P99_MAX_MS

const text = ({ p99Ms, slowestMs, count, failed }: QuietReport) =>
  `p99 ${p99Ms.toFixed(1)} ms, slowest ${slowestMs.toFixed(0)} ms of ${count}, ${failed} failed`

async function measure(name: string): Promise<Row> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-bench-'))
  const token = `gk_admin_${'0123456789abcdef'.repeat(4)}`
  const service = await spawnService({
    GAMEKEEPER_DATA_DIR: dataDir,
    GAMEKEEPER_ADMIN_TOKEN: token,
    GAMEKEEPER_RATE_LIMIT: String(RATE_LIMIT),
  })
  try {
    const admin = { url: service.url, token }
    const quiet = await mintTenant(admin, dataDir, 'Quiet')
    const noisy = await mintTenant(admin, dataDir, 'Noisy')
    using making = await prepareNoise(name, RATE_LIMIT, noisy)
    const working = await startQuiet(quiet)
    const alone = await working.during(ALONE_MS)
    making.begin()
    const beside = await working.during(ALONE_MS)
    const noise = await making.stop()
    await working.stop()
    return { name, alone, noisy: beside, noise }
  } finally {
    await service.kill('SIGKILL')
    await rm(dataDir, { recursive: true, force: true })
  }
}
