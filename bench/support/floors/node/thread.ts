import { parentPort, workerData } from 'node:worker_threads'
import { type Formatting, formatSome } from './format.ts'
import { type Restoring, restoreSome } from './restore.ts'
import { runStep, type Step } from './steps.ts'

function answer(step: Step | Restoring | Formatting): number {
  if (step.kind === 'restore') return restoreSome(step)
  return step.kind === 'format' ? formatSome(step, workerData) : runStep(step, workerData)
}

parentPort?.on('message', (step) => parentPort?.postMessage(answer(step)))
// It has loaded what it needs.
parentPort?.postMessage(0)
