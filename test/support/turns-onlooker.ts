// The worker of turns.ts: sees by the kernel's account how long the main thread has been in one turn.
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { BEAT_MS, LONGEST_TURN_MS, type Seen } from './turns.ts'

const { beats, pid } = workerData as { beats: Int32Array; pid: number }
const MS_PER_NS = 1e-6
const FRAMES = 12

const mainCpuMs = () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) * MS_PER_NS

let beat = Atomics.load(beats, 0)
let since = mainCpuMs()
let isAsked = false

setInterval(() => {
  const current = Atomics.load(beats, 0)
  if (current !== beat) {
    beat = current
    since = mainCpuMs()
    isAsked = false
  } else if (!isAsked && mainCpuMs() - since > LONGEST_TURN_MS + BEAT_MS) {
    isAsked = true
    Atomics.store(beats, 1, beat)
    askForStack(beat)
  }
}, BEAT_MS)

interface Paused {
  params: { callFrames: { functionName: string; location: { scriptId: string; lineNumber: number } }[] }
}

interface ScriptParsed {
  params: { scriptId: string; url: string }
}

/**
 * Stops the main thread wherever it is, for as long as it takes to read its stack. That takes it hundreds of milliseconds on a
 * busy machine, which are not the turn's: they begin with the first script that it names.
 */
function askForStack(asked: number): void {
  const session = new Session()
  session.connectToMainThread()
  const urls = new Map<string, string>()
  let began: number | undefined
  session.on('Debugger.scriptParsed', ({ params }: ScriptParsed) => {
    began ??= mainCpuMs()
    urls.set(params.scriptId, params.url)
  })
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
    const seen: Seen = { beat: asked, stack, askingMs: began === undefined ? 0 : mainCpuMs() - began }
    parentPort?.postMessage(seen)
  })
  session.post('Debugger.enable')
  session.post('Debugger.pause')
}

parentPort?.postMessage('ready')
