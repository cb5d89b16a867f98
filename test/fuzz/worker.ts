// The thread that runs a target: what hangs or eats the memory here can be ended from outside, and the input that did it
// lies in shared memory.
import { parentPort, workerData } from 'node:worker_threads'
import { createRandom, type Random } from '../faults/history/random.ts'
import { type Coverage, startCoverage } from './coverage.ts'
import { mutated } from './mutations.ts'
import { createCurrentInput, type FromWorker, sameFault, type ToWorker, type WorkerSetup } from './protocol.ts'
import { type FuzzTarget, loadTarget } from './target.ts'

const BATCH = 32
const REPORT_EVERY_MS = 1000
const RECENT = 16
const MINIMISE_RUNS_MAX = 2000

const setup = workerData as WorkerSetup
const port = parentPort as NonNullable<typeof parentPort>
const current = createCurrentInput(setup.current)
const target = await loadTarget(setup.target)
const say = (message: FromWorker) => port.postMessage(message)
let runs = 0

/** The fault that an input shows, in a sentence; undefined where it shows none. */
async function faultOf(input: Buffer): Promise<string | undefined> {
  // Slow once may have been the compiler, the collector or a busy machine.
  for (let attempt = 1; attempt <= 3; attempt++) {
    const outcome = await runOnce(input)
    if (typeof outcome === 'string') return outcome
    if (!outcome) return undefined
  }
  return `keeps the thread for more than ${maxCpuMs()} ms`
}

const maxCpuMs = () => target.maxCpuMs ?? 500

/** A sentence for a fault, else whether it was slow. */
async function runOnce(input: Buffer): Promise<string | boolean> {
  runs++
  current.set(input)
  const before = process.threadCpuUsage()
  try {
    const running = target.run(Buffer.from(input))
    if (running) await running
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  }
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000 > maxCpuMs()
}

async function replay(inputs: Uint8Array[]): Promise<void> {
  for (const input of inputs) {
    const fault = await faultOf(Buffer.from(input))
    say({ kind: 'ran', fault })
  }
  await target.close?.()
  say({ kind: 'done', runs, blocks: 0, kept: 0 })
}

/** Smaller and smaller pieces are taken out, as long as the fault stays. */
async function minimise({ input, fault }: Extract<ToWorker, { kind: 'minimise' }>): Promise<void> {
  let best = Buffer.from(input)
  for (let size = Math.ceil(best.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = Math.floor(best.length / size) * size; at >= 0 && runs < MINIMISE_RUNS_MAX; at -= size) {
      const shorter = Buffer.concat([best.subarray(0, at), best.subarray(at + size)])
      const found = await faultOf(shorter)
      if (found === undefined || sameFault(found) !== sameFault(fault)) continue
      best = shorter
      say({ kind: 'finding', input: best, fault: found })
    }
  }
  await target.close?.()
  say({ kind: 'done', runs, blocks: 0, kept: 0 })
}

async function fuzz({ seed, seeds, untilMs }: Extract<ToWorker, { kind: 'fuzz' }>): Promise<void> {
  const random = createRandom(seed)
  const coverage = startCoverage(target.covers ?? ['/src/'])
  const corpus: Buffer[] = []
  const words = target.dictionary ?? []
  for (const input of seeds) await consider(coverage, [Buffer.from(input)], corpus, true)
  let reportAt = 0
  while (Date.now() < untilMs) {
    const batch = Array.from({ length: BATCH }, () => next(random, corpus, words))
    await consider(coverage, batch, corpus, false)
    if (Date.now() < reportAt) continue
    reportAt = Date.now() + REPORT_EVERY_MS
    say({ kind: 'progress', runs, blocks: coverage.size(), kept: corpus.length })
  }
  await target.close?.()
  say({ kind: 'done', runs, blocks: coverage.size(), kept: corpus.length })
}

function next(random: Random, corpus: readonly Buffer[], words: readonly string[]): Buffer {
  const recent = random.chance(0.4) ? corpus.slice(-RECENT) : corpus
  const parent = random.pick(recent)
  const { mutate }: FuzzTarget = target
  return mutate && random.chance(0.5) ? mutate(parent, random) : mutated(parent, random, corpus, words)
}

/** Reading the counters costs far more than most inputs do: first a batch, then, where it reached something, each of it. */
async function consider(coverage: Coverage, batch: Buffer[], corpus: Buffer[], isSeed: boolean): Promise<void> {
  for (const input of batch) {
    const fault = await faultOf(input)
    if (fault) say({ kind: 'finding', input, fault })
  }
  if (coverage.fresh().length === 0 && !isSeed) return
  for (const input of batch) {
    await runOnce(input)
    const fresh = coverage.fresh()
    coverage.learn(fresh)
    if (fresh.length === 0 && !isSeed) continue
    corpus.push(input)
    if (!isSeed) say({ kind: 'kept', input })
  }
}

port.on('message', (order: ToWorker) => {
  if (order.kind === 'fuzz') void fuzz(order)
  else if (order.kind === 'minimise') void minimise(order)
  else void replay(order.inputs)
})
say({ kind: 'ready' })
