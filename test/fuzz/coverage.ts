// Which blocks of our sources have run, from V8's own counters.
import { Session } from 'node:inspector'

interface ScriptCoverage {
  url: string
  functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[]
}

export interface Coverage {
  /** Blocks that have run since the last time this was asked, and never before. */
  fresh(): string[]
  /** Counts them as known from now on. */
  learn(blocks: readonly string[]): void
  size(): number
}

export function startCoverage(covers: readonly string[]): Coverage {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  const known = new Set<string>()
  return {
    fresh() {
      const found: string[] = []
      // Answered at once, since the session is one with its own thread.
      session.post('Profiler.takePreciseCoverage', (_error, answer) => {
        for (const { url, functions } of (answer?.result ?? []) as ScriptCoverage[]) {
          if (!covers.some((part) => url.includes(part)) || url.includes('.testing.')) continue
          for (const { ranges } of functions)
            for (const { startOffset, endOffset, count } of ranges) {
              const block = `${url}:${startOffset}-${endOffset}`
              if (count > 0 && !known.has(block)) found.push(block)
            }
        }
      })
      return found
    },
    learn(blocks) {
      for (const block of blocks) known.add(block)
    },
    size: () => known.size,
  }
}
