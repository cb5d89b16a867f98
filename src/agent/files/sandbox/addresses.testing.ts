// Another thread, which is given the address of a file as the first one calls it.
import { readFileSync, readlinkSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { addressHere } from './addresses.ts'

export interface CameThere {
  address: string
  /** The number of this thread. */
  own: string
  text: string
}

const address = addressHere<string>(workerData)
const own = readlinkSync('/proc/thread-self').split('/').at(-1) ?? ''
parentPort?.postMessage({ address, own, text: readFileSync(address, 'utf8') } satisfies CameThere)
