import { parentPort, workerData } from 'node:worker_threads'
import { runStep, type Step } from './steps.ts'

parentPort?.on('message', (step: Step) => parentPort?.postMessage(runStep(step, workerData)))
