// The least program in Node: it stays, as a service does, and does each step when it is told to.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type Formatting, unitsOf } from './format.ts'
import { pack, type Restoring, readList } from './restore.ts'
import { BLOCK, type LeastFile, type Step } from './steps.ts'
import { syncFolder, walk } from './tree.ts'

export type Asked =
  | { step: 'first'; tree: string; store: string; share: number }
  | { step: 'format'; tree: string; store: string }
  | { step: 'walk'; tree: string }
  | { step: 'prints'; tree: string; prints: string }
  | { step: 'changed'; tree: string; prints: string; store: string; share: number }
  | { step: 'pack'; tree: string; pack: string }
  | { step: 'restore'; pack: string; target: string }

export interface Answered {
  seconds: number
  /** Of all files, or of what has changed, where there is something to add up. */
  bytes: number
}

/** At least as many as the program in C has: more than processors, since those that write large files wait for the disk. */
const THREADS = Math.max(4, availableParallelism())
/** Of files that are smaller on average, more threads than processors only wait for each other. */
const LARGE_BYTES = 65_536

const threads = Array.from(
  { length: THREADS },
  (_, workerData) => new Worker(new URL('./thread.ts', import.meta.url), { workerData }),
)

const NO_PRINTS = new Uint32Array()

const bytesOf = (files: readonly LeastFile[]) => total(files.map(({ size }) => size))
const total = (counts: readonly number[]) => counts.reduce((sum, one) => sum + one, 0)
const counter = () => new Int32Array(new SharedArrayBuffer(4))

/** For what is written to a disk. */
const writers = (files: number, bytes: number) => (bytes >= files * LARGE_BYTES ? THREADS : availableParallelism())

async function onThreads(step: Step | Restoring | Formatting, count: number): Promise<number[]> {
  return await Promise.all(
    threads.slice(0, count).map((thread) => {
      const { promise, resolve } = Promise.withResolvers<number>()
      thread.once('message', resolve)
      thread.postMessage(step)
      return promise
    }),
  )
}

async function work(step: Omit<Step, 'next'>): Promise<number> {
  const { store, files } = step
  const bytes = total(await onThreads({ ...step, next: counter() }, writers(files.length, bytesOf(files))))
  if (store) syncFolder(store)
  return bytes
}

async function format(files: readonly LeastFile[], store: string): Promise<number> {
  const count = writers(files.length, bytesOf(files))
  const bytes = total(await onThreads({ kind: 'format', units: unitsOf(files), next: counter(), store }, count))
  syncFolder(store)
  return bytes
}

async function restore(from: string, target: string): Promise<number> {
  const { folders, units, fileCount } = readList(`${from}.list`)
  for (const folder of folders) mkdirSync(`${target}/${folder}`)
  const count = writers(fileCount, statSync(from).size)
  await onThreads({ kind: 'restore', pack: from, target, units, next: counter() }, count)
  // syncfs(2), which Node lacks.
  execFileSync('sync', ['-f', target])
  return units.length
}

async function doStep(asked: Asked): Promise<number> {
  if (asked.step === 'restore') return restore(asked.pack, asked.target)
  const files = walk(asked.tree, [])
  switch (asked.step) {
    case 'pack':
      pack(asked.tree, files, asked.pack)
      return files.length
    case 'walk':
      return files.length
    case 'format':
      return format(files, asked.store)
    case 'prints': {
      const blocks = files.reduce((sum, { size }) => sum + Math.ceil(size / BLOCK), 0)
      const prints = new Uint32Array(new SharedArrayBuffer(4 * blocks))
      const bytes = await work({ kind: 'prints', files, prints, store: '', share: 0 })
      const newestMs = files.reduce((newest, { mtimeMs }) => Math.max(newest, mtimeMs), 0)
      writeFileSync(
        asked.prints,
        Buffer.concat([Buffer.from(Float64Array.of(newestMs).buffer), Buffer.from(prints.buffer)]),
      )
      return bytes
    }
    case 'first':
      return work({ ...asked, kind: 'first', files, prints: NO_PRINTS })
    case 'changed': {
      const { buffer } = Uint8Array.from(readFileSync(asked.prints))
      const newestMs = new Float64Array(buffer, 0, 1)[0] ?? 0
      const newer = files.filter(({ mtimeMs }) => mtimeMs > newestMs)
      return work({ ...asked, kind: 'changed', files: newer, prints: new Uint32Array(buffer, 8) })
    }
  }
}

process.on('message', async (asked: Asked) => {
  const begun = performance.now()
  const bytes = await doStep(asked)
  process.send?.({ seconds: (performance.now() - begun) / 1000, bytes } satisfies Answered)
})
process.on('disconnect', () => process.exit())
await Promise.all(threads.map((thread) => once(thread, 'message')))
process.send?.('ready')
