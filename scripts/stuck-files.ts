// A test file whose process neither says anything nor ends is ended, and fails the run with a picture of what was there:
// `node:test` itself would wait for it for ever.
import type { run } from 'node:test'
import { sendSignal } from '../src/agent/games/process-identity.ts'
import { childrenOf, readIfThere } from '../src/kit/files/kernel-files.ts'
import { commandOf } from '../test/support/children.ts'

type Results = ReturnType<typeof run>

export interface Patience {
  /** Longer than any test may take. */
  quietMs: number
  /** From the end of its last test on. */
  endsWithinMs: number
}

const LOOK_EVERY_MS = 1000

interface Seen {
  heardAt: number
  /** Tests that have begun and not ended. */
  open: number
  hasEnded: boolean
}

/** Told of each once; `picture` is for people, and empty where the process has ended and something else holds its output. */
export function watchFiles(
  results: Results,
  { quietMs, endsWithinMs }: Patience,
  onStuck: (file: string, picture: string) => void,
): void {
  const files = new Map<string, Seen>()
  const isFile = ({ name, file }: { name: string; file?: string | undefined }) => name === file
  results.on('test:dequeue', (event) => {
    const { file = '' } = event
    if (isFile(event)) files.set(file, { heardAt: performance.now(), open: 0, hasEnded: false })
    else hear(file, 1)
  })
  results.on('test:complete', (event) => {
    const { file = '' } = event
    if (isFile(event)) files.delete(file)
    else hear(file, -1)
  })
  function hear(file: string, change: 1 | -1): void {
    const seen = files.get(file)
    if (!seen) return
    seen.heardAt = performance.now()
    seen.open += change
    seen.hasEnded ||= change < 0
  }
  const timer = setInterval(() => {
    for (const [file, { heardAt, open, hasEnded }] of files) {
      const allowedMs = hasEnded && open === 0 ? endsWithinMs : quietMs
      if (performance.now() - heardAt < allowedMs) continue
      files.delete(file)
      const tree = processesOf(file)
      onStuck(file, tree.map(describe).join('\n'))
      for (const { pid } of tree.toReversed()) sendSignal(pid, 'SIGKILL')
    }
  }, LOOK_EVERY_MS)
  results.once('close', () => clearInterval(timer))
}

interface Process {
  pid: number
  depth: number
}

/** Of the file, and all below it. */
function processesOf(file: string): Process[] {
  const below = (pid: number, depth: number): Process[] => [
    { pid, depth },
    ...childrenOf(pid).flatMap((child) => below(child, depth + 1)),
  ]
  return childrenOf(process.pid)
    .filter((pid) => commandOf(pid).includes(file))
    .flatMap((pid) => below(pid, 0))
}

function describe({ pid, depth }: Process): string {
  const state = /^State:\s+(.*)$/m.exec(readIfThere(`/proc/${pid}/status`))?.[1]
  const waitsFor = readIfThere(`/proc/${pid}/wchan`)
  return `${'  '.repeat(depth + 1)}${pid} ${state}, in ${waitsFor || '?'}: ${commandOf(pid).slice(-160)}`
}
