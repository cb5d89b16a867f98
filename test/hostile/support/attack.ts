// The one way in which a hostile test asserts: the attack runs while the victim works, and afterwards the victim's data is
// right, all its requests were answered, and the service is up with bounded memory, and was never in one turn of its event
// loop for longer than a turn may take, counted in processor time. By the clock the victim is judged in the whole form alone,
// which has the machine to itself; how much slower it gets is what `npm run bench -- noisy` measures.
import assert from 'node:assert/strict'
import { peakBytes } from '../../../bench/measure.ts'
import { LONG_TURN } from '../../support/turns.ts'
import { inspectVictim } from './inspect.ts'
import type { Scene, Tenant } from './scene.ts'
import { TIMES } from './size.ts'
import { startVictim, type Timing, type VictimReport } from './victim.ts'

/** The floors are above what a machine of two cores makes of a quiet service; above them the victim's own pace counts. */
const SLOWEST = { floorMs: 5000, times: 20 }
const MEDIAN = { floorMs: 750, times: 20 }
const HEALTH_WITHIN_MS = 60_000

export type Attack = (attacker: Tenant, signal: AbortSignal) => Promise<void>

/** The signal fires when the victim has given up, and nothing that comes later counts. */
export async function attack(scene: Scene, work: Attack): Promise<void> {
  const { keeper, victim } = scene
  const { pid } = keeper
  const working = await startVictim({ url: keeper.url, token: victim.token, serverId: victim.serverId })
  working.attacked()
  const over = new AbortController()
  const attacking = work(scene.attacker, over.signal)
  // An attack that makes the service hang would wait for it for ever; what it throws then is of no interest.
  const gaveUp = await Promise.race([attacking, working.ended.then(() => true)])
  if (gaveUp === true) attacking.catch(() => {})
  over.abort()
  const report = await working.stop()
  for (const line of describe(scene, report)) scene.say(line)
  assert.deepEqual(report.faults, [], `${keeper.output().slice(-3000)}`)
  await assertUp(scene, pid)
  assert.doesNotMatch(keeper.output(), LONG_TURN)
  if (TIMES > 1) assertQuick(report)
  await inspectVictim(scene, report)
}

async function assertUp({ keeper, memory }: Scene, pid: number): Promise<void> {
  assert.equal(keeper.isDown(), false, `the service is down: ${keeper.output().slice(-3000)}`)
  assert.equal(keeper.pid, pid, 'the service was started again')
  const health = await fetch(`${keeper.url}/healthz`, { signal: AbortSignal.timeout(HEALTH_WITHIN_MS) })
  assert.equal(health.status, 200)
  const peak = peakMiB(pid)
  assert.ok(peak <= memory.rssMiB, `the service took ${peak} MiB of memory; it may take ${memory.rssMiB}`)
}

function assertQuick({ before, during }: VictimReport): void {
  const slow = (name: string, of: (timings: Timing[]) => number, { floorMs, times }: typeof SLOWEST) => {
    const [was, is] = [of(before), of(during)]
    const limit = Math.max(floorMs, times * was)
    assert.ok(is <= limit, `the victim's ${name} request took ${is} ms, ${was} ms before the attack`)
  }
  slow('slowest', slowest, SLOWEST)
  slow('median', (timings) => quantile(timings, 0.5), MEDIAN)
}

const sorted = (timings: Timing[]) => timings.map(({ ms }) => ms).sort((a, b) => a - b)
const quantile = (timings: Timing[], share: number) => sorted(timings)[Math.floor(timings.length * share)] ?? 0
const slowest = (timings: Timing[]) => sorted(timings).at(-1) ?? 0

function describe({ keeper }: Scene, { before, during }: VictimReport): string[] {
  const pace = (timings: Timing[]) =>
    `${timings.length} requests, median ${quantile(timings, 0.5).toFixed(0)} ms, p99 ${quantile(timings, 0.99).toFixed(0)} ms, ` +
    `slowest ${slowest(timings).toFixed(0)} ms`
  return [
    `before: ${pace(before)}`,
    `during: ${pace(during)}`,
    ...(keeper.isDown() ? ['the service is down'] : [`the service's memory was ${peakMiB(keeper.pid)} MiB at most`]),
  ]
}

const peakMiB = (pid: number) => Math.round(peakBytes(pid) / 2 ** 20)
