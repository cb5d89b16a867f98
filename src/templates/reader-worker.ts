// One text, one answer, one at a time: the thread behind reader-thread.ts.
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { readTemplate, UnreadableTemplate } from './read.ts'
import type { ReaderAnswer, ReaderOrder } from './reader-thread.ts'

const NICE = 10

function answer({ text, type, options }: ReaderOrder): ReaderAnswer {
  try {
    return { read: readTemplate(text, type, options) }
  } catch (error) {
    if (error instanceof UnreadableTemplate) return { faults: error.faults }
    if (error instanceof RangeError) return { faults: [{ path: '', message: 'is nested too deeply', line: 1 }] }
    return { error: (error as Error).stack ?? String(error) }
  }
}

if (parentPort) {
  // On Linux this is the calling thread alone.
  setPriority(0, NICE)
  parentPort.on('message', (order: ReaderOrder) => parentPort?.postMessage(answer(order)))
}
