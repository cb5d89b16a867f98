// Runs a program of somebody else, and says how long it took and the most memory that it had.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { peakBytes } from '../measure.ts'

/** The peak only ever rises, so what is read last is that of all but the last moment. */
const LOOK_EVERY_MS = 20

export interface Ran {
  seconds: number
  peakBytes: number
}

export async function runMeasured(
  [program = '', ...args]: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<Ran> {
  const begun = performance.now()
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  let peak = 0
  const look = () => {
    // Not a number where it has ended and nobody was told yet.
    const now = peakBytes(child.pid ?? 0)
    if (now > peak) peak = now
  }
  const looking = setInterval(look, LOOK_EVERY_MS)
  try {
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}: ${said}`)
  } finally {
    clearInterval(looking)
  }
  return { seconds: (performance.now() - begun) / 1000, peakBytes: peak }
}
