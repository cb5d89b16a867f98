// Runs a target on a thread that is watched: an input that hangs, ends the thread or eats its memory is a finding too.
import { Worker } from 'node:worker_threads'
import { createCurrentInput, type FromWorker, newCurrentInput, type ToWorker } from './protocol.ts'

const HANGS_AFTER_MS = 30_000
const WATCH_EVERY_MS = 500
const HEAP_MIB = 512

export interface Finding {
  input: Buffer
  fault: string
}

type Listener = (message: FromWorker) => void

/** Resolves when the order is done; with a finding where the thread did not live to see it. */
function order(target: string, message: ToWorker, onMessage: Listener): Promise<Finding | undefined> {
  const memory = newCurrentInput()
  const current = createCurrentInput(memory)
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: { target, current: memory },
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  let sequence = -1
  let changedAt = Date.now()
  return new Promise((resolve) => {
    const end = (fault?: string) => {
      clearInterval(watch)
      void worker.terminate()
      resolve(fault === undefined ? undefined : { input: current.get(), fault })
    }
    const watch = setInterval(() => {
      if (current.sequence() !== sequence) changedAt = Date.now()
      sequence = current.sequence()
      if (Date.now() - changedAt > HANGS_AFTER_MS) end(`hangs for more than ${HANGS_AFTER_MS} ms`)
    }, WATCH_EVERY_MS)
    worker.on('error', (error) => end(`the thread ended: ${error}`))
    worker.on('message', (answer: FromWorker) => {
      if (answer.kind === 'ready') return worker.postMessage(message)
      onMessage(answer)
      if (answer.kind === 'done') end()
    })
  })
}

/** The findings among these inputs. */
export async function replay(target: string, inputs: readonly Uint8Array[]): Promise<Finding[]> {
  const findings: Finding[] = []
  let left = [...inputs]
  while (left.length > 0) {
    let ran = 0
    const ended = await order(target, { kind: 'replay', inputs: left }, (message) => {
      if (message.kind !== 'ran') return
      const input = Buffer.from(left[ran++] ?? [])
      if (message.fault) findings.push({ input, fault: message.fault })
    })
    if (!ended) break
    findings.push(ended)
    // The rest on a new thread.
    left = left.slice(ran + 1)
  }
  return findings
}

export interface FuzzOptions {
  seed: number
  seeds: readonly Uint8Array[]
  untilMs: number
  onFinding(finding: Finding): void
  onKept(input: Buffer): void
  onProgress(progress: { runs: number; blocks: number; kept: number }): void
}

/** Until the time is over; a thread that a finding has ended is started anew with another seed. */
export async function fuzz(target: string, options: FuzzOptions): Promise<void> {
  for (let { seed } = options; Date.now() < options.untilMs; seed++) {
    const start: ToWorker = { kind: 'fuzz', seed, seeds: [...options.seeds], untilMs: options.untilMs }
    const ended = await order(target, start, (message) => {
      if (message.kind === 'finding') options.onFinding({ ...message, input: Buffer.from(message.input) })
      if (message.kind === 'kept') options.onKept(Buffer.from(message.input))
      if (message.kind === 'progress' || message.kind === 'done') options.onProgress(message)
    })
    if (ended) options.onFinding(ended)
  }
}

/** The finding with everything taken out that it does not need. One that ends its thread stays as far as that got. */
export async function minimise(target: string, finding: Finding): Promise<Finding> {
  let best = finding
  await order(target, { kind: 'minimise', ...finding }, (message) => {
    if (message.kind === 'finding') best = { ...message, input: Buffer.from(message.input) }
  })
  return best
}
