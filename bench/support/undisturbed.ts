// On a rented machine the host gives its processors to others for a while. What is measured then says nothing about us.
import { readFileSync } from 'node:fs'
import { cpuSeconds, cpuSecondsOfEnded, TICKS_PER_SECOND } from '../measure.ts'

const STOLEN_MAX = 0.02
const ATTEMPTS = 6

interface Ticks {
  stolen: number
  /** Neither idle nor stolen. */
  used: number
  all: number
}

function readTicks(): Ticks {
  const [, ...columns] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/\s+/).map(Number) ?? []
  // user, nice, system, idle, iowait, irq, softirq, steal; what guests used is in "user" already.
  const counted = columns.slice(0, 8)
  const [stolen = 0, idle = 0, waiting = 0] = [counted[7], counted[3], counted[4]]
  const all = counted.reduce((sum, ticks) => sum + ticks, 0)
  return { stolen, all, used: all - stolen - idle - waiting }
}

/**
 * The share of all processors that was used by neither this process nor one that it has started and that has ended, between the
 * call and that of the answer. The kernel's own threads count as others.
 */
export function watchOthers(): () => number {
  const ownTicks = () => (cpuSeconds(process.pid) + cpuSecondsOfEnded()) * TICKS_PER_SECOND
  const before = readTicks()
  const ownBefore = ownTicks()
  return () => {
    const now = readTicks()
    const others = now.used - before.used - (ownTicks() - ownBefore)
    return Math.max(0, others) / Math.max(1, now.all - before.all)
  }
}

/** The share of all processors that the host has taken between the call and that of the answer. */
export function watchHost(): () => number {
  const before = readTicks()
  return () => {
    const now = readTicks()
    return (now.stolen - before.stolen) / Math.max(1, now.all - before.all)
  }
}

/** Measures again where the host took more than a little meanwhile, and says so; at the last attempt it lets it stand. */
export async function undisturbed<T>(what: string, measure: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const stolenShare = watchHost()
    const result = await measure()
    const share = stolenShare()
    if (share <= STOLEN_MAX) return result
    const verdict = attempt < ATTEMPTS ? 'it is measured again' : 'it stands all the same'
    console.log(`${what}: the host took ${(share * 100).toFixed(0)} % of the processors meanwhile; ${verdict}`)
    if (attempt === ATTEMPTS) return result
  }
}
