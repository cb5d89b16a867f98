// One file, one answer, one at a time: the thread behind config-filler.ts.
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { FillAnswer, FillOrder } from './config-filler.ts'
import { ConfigFault, fillConfig } from './fill.ts'

const NICE = 10

function answer({ format, text, settings }: FillOrder): FillAnswer {
  try {
    return { text: fillConfig(format, text, settings) }
  } catch (error) {
    if (error instanceof ConfigFault) return { fault: error.message }
    if (error instanceof RangeError) return { fault: 'it is nested too deeply' }
    return { error: (error as Error).stack ?? String(error) }
  }
}

if (parentPort) {
  // On Linux this is the calling thread alone.
  setPriority(0, NICE)
  parentPort.on('message', (order: FillOrder) => parentPort?.postMessage(answer(order)))
}
