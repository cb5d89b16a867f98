// What a game has said over a connection, and who waits for a line of it. A game is a stranger's code: only the last of it is kept.
import type { LineMatcher } from '../console/line-pattern.ts'

const LINES_MAX = 200
const LINE_MAX_CHARS = 4096

/** The connection, or what came over it, is of no use. For people. */
export class RemoteFault extends Error {}

export interface HeardLines {
  add(text: string): void
  /** What was said until now counts no more. */
  forget(): void
  /** Resolves once a line that was said matches. Fails once there will be none. */
  until(pattern: LineMatcher): Promise<void>
  /** Nothing more will be said. */
  end(error: Error): void
}

export function createHeardLines(): HeardLines {
  let lines: Buffer[] = []
  let over: Error | undefined
  const waiting = new Set<{ pattern: LineMatcher; resolve(): void; reject(error: Error): void }>()

  return {
    add(text) {
      const last = text.split(/\r?\n/).slice(-LINES_MAX)
      const added = last.map((line) => Buffer.from(line.slice(0, LINE_MAX_CHARS)))
      lines = [...lines, ...added].slice(-LINES_MAX)
      for (const each of waiting) {
        if (!added.some(each.pattern.matches)) continue
        waiting.delete(each)
        each.resolve()
      }
    },
    forget() {
      lines = []
    },
    until(pattern) {
      if (lines.some(pattern.matches)) return Promise.resolve()
      if (over) return Promise.reject(over)
      return new Promise((resolve, reject) => waiting.add({ pattern, resolve, reject }))
    },
    end(error) {
      over ??= error
      for (const each of waiting) each.reject(over)
      waiting.clear()
    },
  }
}
