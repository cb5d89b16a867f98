import { parentPort, workerData } from 'node:worker_threads'
import { type Restoring, restoreSome } from './restore.ts'
import { runStep, type Step } from './steps.ts'

parentPort?.on('message', (step: Step | Restoring) =>
  parentPort?.postMessage(step.kind === 'restore' ? restoreSome(step) : runStep(step, workerData)),
)
// It has loaded what it needs.
parentPort?.postMessage(0)
