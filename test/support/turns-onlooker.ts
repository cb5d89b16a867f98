// The worker of turns.ts: sees by the kernel's account how long the main thread has been in one turn.
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { BEAT_MS, LONGEST_TURN_MS, type Seen, SHARED } from './turns.ts'

const { shared, pid } = workerData as { shared: Int32Array; pid: number }
const MS_PER_NS = 1e-6
const FRAMES = 12
/** For a stopped thread whose functions are compiled anew, and to which a second of requests comes at once. */
const RECOVERS_MS = 1000
const mainCpuMs = () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) * MS_PER_NS

/**
 * Whoever runs on a rented processor while its host takes it away is billed for that, although nothing ran. The kernel counts it
 * for each processor, in hundredths of a second, once it has it back.
 */
const STOLEN = { field: 8, tickMs: 10 }
const RETURNED_MS = 2 * STOLEN.tickMs

const stolenMs = () =>
  (readFileSync('/proc/stat', 'utf8').match(/^cpu\d+ .*$/gm) ?? []).map(
    (line) => Number(line.split(' ')[STOLEN.field] ?? 0) * STOLEN.tickMs,
  )

/** Of the processor from which most was taken: a thread moves from one to another. */
const stolenSince = (before: number[]) =>
  Math.max(0, ...stolenMs().map((ms, processor) => ms - (before[processor] ?? ms)))

/** A turn that is too long already. It is told of when it has ended and its stack is known. */
interface Asked {
  beat: number
  turnMs: number
  isOver: boolean
  stack?: string
}

let beat = Atomics.load(shared, SHARED.beat)
let last = mainCpuMs()
let seenMs = 0
let stolenBefore = stolenMs()
let asked: Asked | undefined

setInterval(() => {
  const now = mainCpuMs()
  const grownMs = now - last
  last = now
  const current = Atomics.load(shared, SHARED.beat)
  if (current !== beat) {
    if (asked) judge(asked, stolenBefore)
    beat = current
    seenMs = 0
    stolenBefore = stolenMs()
    asked = undefined
    return
  }
  // What asking takes of the main thread is not the turn's.
  if (asked && asked.stack === undefined) return
  seenMs += grownMs
  const excusedMs = Atomics.load(shared, SHARED.excusedUs) / 1000
  const turnMs = seenMs - BEAT_MS - excusedMs
  if (asked) asked.turnMs = turnMs
  else if (turnMs > LONGEST_TURN_MS && Atomics.load(shared, SHARED.disturbed) === 0) asked = askForStack(turnMs)
}, BEAT_MS)

/** When the kernel has counted what was taken during the turn. */
function judge(turn: Asked, before: number[]): void {
  setTimeout(() => tell(turn, { isOver: true, turnMs: turn.turnMs - stolenSince(before) }), RETURNED_MS)
}

function tell(turn: Asked, known: Partial<Asked>): void {
  const { isOver, stack, ...seen } = Object.assign(turn, known)
  if (isOver && stack !== undefined) parentPort?.postMessage({ ...seen, stack } satisfies Seen)
}

interface Paused {
  params: { callFrames: { functionName: string; location: { scriptId: string; lineNumber: number } }[] }
}

interface ScriptParsed {
  params: { scriptId: string; url: string }
}

/** Stops the main thread wherever it is, for hundreds of milliseconds on a busy machine. */
function askForStack(turnMs: number): Asked {
  const turn: Asked = { beat, turnMs, isOver: false }
  Atomics.store(shared, SHARED.asked, beat)
  Atomics.store(shared, SHARED.disturbed, 1)
  const session = new Session()
  session.connectToMainThread()
  const urls = new Map<string, string>()
  session.on('Debugger.scriptParsed', ({ params }: ScriptParsed) => urls.set(params.scriptId, params.url))
  session.once('Debugger.paused', ({ params }: Paused) => {
    const stack = params.callFrames
      .slice(0, FRAMES)
      .map(
        ({ functionName, location: { scriptId, lineNumber } }) =>
          `    at ${functionName || '(anonymous)'} ${urls.get(scriptId)}:${lineNumber + 1}`,
      )
      .join('\n')
    session.post('Debugger.resume')
    session.post('Debugger.disable')
    session.disconnect()
    tell(turn, { stack })
    setTimeout(() => Atomics.store(shared, SHARED.disturbed, 0), RECOVERS_MS)
  })
  session.post('Debugger.enable')
  session.post('Debugger.pause')
  return turn
}

parentPort?.postMessage('ready')
