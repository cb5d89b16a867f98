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

let beat = Atomics.load(shared, SHARED.beat)
let since = mainCpuMs()
let isAsked = false

setInterval(() => {
  const current = Atomics.load(shared, SHARED.beat)
  if (current !== beat) {
    beat = current
    since = mainCpuMs()
    isAsked = false
  } else if (!isAsked && mainCpuMs() - since > mayTakeMs() && Atomics.load(shared, SHARED.disturbed) === 0) {
    isAsked = true
    Atomics.store(shared, SHARED.asked, beat)
    Atomics.store(shared, SHARED.disturbed, 1)
    askForStack(beat)
  }
}, BEAT_MS)

const mayTakeMs = () => LONGEST_TURN_MS + BEAT_MS + Atomics.load(shared, SHARED.excusedMs)

interface Paused {
  params: { callFrames: { functionName: string; location: { scriptId: string; lineNumber: number } }[] }
}

interface ScriptParsed {
  params: { scriptId: string; url: string }
}

/**
 * Stops the main thread wherever it is, for as long as it takes to read its stack. That takes it hundreds of milliseconds on a
 * busy machine, which are not the turn's: nothing counts from before it is asked until it is told to go on.
 */
function askForStack(asked: number): void {
  const began = mainCpuMs()
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
    const seen: Seen = { beat: asked, stack, askingMs: mainCpuMs() - began }
    session.post('Debugger.resume')
    session.post('Debugger.disable')
    session.disconnect()
    parentPort?.postMessage(seen)
    setTimeout(() => Atomics.store(shared, SHARED.disturbed, 0), RECOVERS_MS)
  })
  session.post('Debugger.enable')
  session.post('Debugger.pause')
}

parentPort?.postMessage('ready')
