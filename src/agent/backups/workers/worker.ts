// What runs in a worker thread: it takes jobs and answers them.
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { openBlobStore } from '../../../blobs/open-store.ts'
import { addressHere } from '../../files/sandbox/addresses.ts'
import { look } from '../../files/sandbox/looked.ts'
import { areGmacsWorthwhile } from '../blocks/block-speed.ts'
import { createGmac } from '../format/gmac.ts'
import { createSealer } from '../format/seal.ts'
import { compareChunks } from '../tree/same-chunk.ts'
import { createLane, decodeFrames, type Lane } from './worker-decode.ts'
import { type DecodeJob, type DecodeResult, errorCode, type Job, type WorkerData } from './worker-jobs.ts'
import { createPatcher } from './worker-patch.ts'
import { hashFile, readFiles, type Tools } from './worker-read.ts'

/** While one job waits for the disk, another has the processor. */
const LANES = 2

async function serve(port: NonNullable<typeof parentPort>, data: WorkerData): Promise<void> {
  // On Linux this is the calling thread alone. Block devices under BFQ derive the I/O priority from it.
  if (data.nice > 0) setPriority(0, data.nice)
  const sealer = createSealer(data.key, data.blockHash)
  const tools = { sealer, blobs: await openBlobStore(data.blobs, { clear: false }) }
  const lanes: Lane[] = []
  const waiting: { id: number; job: Job }[] = []
  let running = 0
  let reading: Tools | undefined

  /** Made when the first file is read, so that nothing else waits for it. */
  function readingTools(): Tools {
    if (reading) return reading
    const isWorthwhile = areGmacsWorthwhile(data.blockHash)
    const print = isWorthwhile ? createGmac(data.printKey) : null
    // What is encrypted is checked by keyed names alone: who has no key must not be able to change anything unseen.
    const gmac = isWorthwhile && !sealer.isEncrypted ? createGmac(data.spanKey) : null
    reading = { sealer, patcher: createPatcher(sealer, tools.blobs), print, gmac }
    return reading
  }

  async function decode(job: DecodeJob): Promise<DecodeResult> {
    const lane = lanes.pop() ?? createLane()
    try {
      return await decodeFrames(tools, lane, job)
    } finally {
      lanes.push(lane)
    }
  }

  async function resultOf(job: Job): Promise<unknown> {
    if (job.kind === 'look') return look(addressHere(job.address), job.names.split('/'))
    if (job.kind === 'compare') return compareChunks(job.tree, job.chunks)
    if (job.kind === 'read') return readFiles(readingTools(), job)
    return job.kind === 'hash' ? hashFile(sealer, job) : await decode(job)
  }

  async function answer({ id, job }: { id: number; job: Job }): Promise<void> {
    try {
      port.postMessage({ id, result: await resultOf(job) })
    } catch (error) {
      port.postMessage({ id, error: errorCode(error) })
    }
  }

  function next(): void {
    const message = running < LANES ? waiting.shift() : undefined
    if (!message) return
    running++
    void answer(message).finally(() => {
      running--
      next()
    })
  }

  port.on('message', (message) => {
    waiting.push(message)
    next()
  })
}

if (parentPort) await serve(parentPort, workerData as WorkerData)
