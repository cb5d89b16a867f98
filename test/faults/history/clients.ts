// Clients that work at once, each on its own plot, until they have done enough or the service is gone.
import type { Plot } from './model.ts'
import { perform } from './perform.ts'
import type { Random } from './random.ts'
import type { Round } from './round.ts'
import { EVERYTHING, planStep, type StepName } from './steps.ts'

export interface Work {
  /** Each client does so many things at most. */
  steps: number
  weights?: Partial<Record<StepName, number>>
  maxBytes?: number
  /** Asked before each step: waits while somebody needs the server for themselves. */
  gate?: Gate
}

const LARGEST_BYTES = 200_000

export async function workOn(round: Round, plots: readonly Plot[], work: Work): Promise<void> {
  await Promise.all(plots.map((plot) => workOnPlot(round, plot, work)))
}

async function workOnPlot(round: Round, plot: Plot, work: Work): Promise<void> {
  const random = round.random.fork(`${plot.server.name} ${plot.path} ${round.keeper.starts}`)
  for (let step = 0; step < work.steps && !plot.doubt && !round.keeper.isDown(); step++) {
    using _passed = await work.gate?.enter()
    await doOne(round, plot, random, work)
  }
}

async function doOne(round: Round, plot: Plot, random: Random, work: Work): Promise<void> {
  const { newLabel } = round
  const step = planStep(
    { plot, random, newLabel, maxBytes: work.maxBytes ?? LARGEST_BYTES },
    work.weights ?? EVERYTHING,
  )
  await perform(round, plot, step)
}

/** Many may be inside together, or one alone. */
export interface Gate {
  enter(): Promise<Disposable>
  alone<T>(work: () => Promise<T>): Promise<T>
}

export function createGate(): Gate {
  let inside = 0
  let closed: Promise<void> | undefined
  let onEmpty: (() => void) | undefined
  return {
    async enter() {
      while (closed) await closed
      inside++
      return {
        [Symbol.dispose]() {
          if (--inside === 0) onEmpty?.()
        },
      }
    },
    async alone(work) {
      while (closed) await closed
      const { promise, resolve } = Promise.withResolvers<void>()
      closed = promise
      if (inside > 0) await new Promise<void>((empty) => (onEmpty = empty))
      onEmpty = undefined
      try {
        return await work()
      } finally {
        closed = undefined
        resolve()
      }
    },
  }
}
