// The least program in Node: it stays, as a service does, and does each step when it is told to.
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { BLOCK, type LeastFile, type Step } from './steps.ts'

export type Asked =
  | { step: 'first' | 'changed'; tree: string; store: string; share: number }
  | { step: 'prints' | 'walk'; tree: string }

export interface Answered {
  seconds: number
  /** Of all files, or of what has changed. */
  bytes: number
}

const threads = Array.from(
  { length: availableParallelism() },
  (_, workerData) => new Worker(new URL('./thread.ts', import.meta.url), { workerData }),
)
let prints: Uint32Array = new Uint32Array()
let newestMs = 0

function walk(folder: string, files: LeastFile[]): LeastFile[] {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    const { size, mtimeMs } = lstatSync(path)
    if (entry.isDirectory()) walk(path, files)
    else {
      const last = files.at(-1)
      files.push({ path, size, mtimeMs, first: last ? last.first + Math.ceil(last.size / BLOCK) : 0 })
    }
  }
  return files
}

async function work(kind: Step['kind'], files: LeastFile[], store = '', share = 0): Promise<number> {
  const next = new Int32Array(new SharedArrayBuffer(4))
  const answers = threads.map((thread) => {
    const { promise, resolve } = Promise.withResolvers<number>()
    thread.once('message', resolve)
    thread.postMessage({ kind, files, next, prints, store, share } satisfies Step)
    return promise
  })
  const bytes = (await Promise.all(answers)).reduce((sum, one) => sum + one, 0)
  if (store) {
    const fd = openSync(store, 'r')
    fsyncSync(fd)
    closeSync(fd)
  }
  return bytes
}

async function doStep(asked: Asked): Promise<number> {
  const files = walk(asked.tree, [])
  switch (asked.step) {
    case 'walk':
      return files.length
    case 'prints': {
      const blocks = files.reduce((sum, { size }) => sum + Math.ceil(size / BLOCK), 0)
      prints = new Uint32Array(new SharedArrayBuffer(4 * blocks))
      newestMs = files.reduce((newest, { mtimeMs }) => Math.max(newest, mtimeMs), 0)
      return work('prints', files)
    }
    case 'first':
      return work('first', files, asked.store, asked.share)
    case 'changed':
      return work(
        'changed',
        files.filter(({ mtimeMs }) => mtimeMs > newestMs),
        asked.store,
        asked.share,
      )
  }
}

process.on('message', async (asked: Asked) => {
  const begun = performance.now()
  const bytes = await doStep(asked)
  process.send?.({ seconds: (performance.now() - begun) / 1000, bytes } satisfies Answered)
})
process.on('disconnect', () => process.exit())
