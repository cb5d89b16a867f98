// Uploads under way. They live outside the page, so that they go on while somebody looks at something else.
import { useSyncExternalStore } from 'react'
import { client } from '../../../api/client.ts'
import type { DroppedFile } from './dropped.ts'

export interface Upload {
  id: number
  serverId: string
  name: string
  bytesDone: number
  bytesTotal: number
  state: 'waiting' | 'sending' | 'done' | { error: unknown }
}

const AT_ONCE = 3
const DONE_SHOWN_MS = 3000
let uploads: readonly Upload[] = []
let lastId = 0
const listeners = new Set<() => void>()
const aborts = new Map<number, AbortController>()
const queue: (() => Promise<void>)[] = []
let running = 0

function set(next: readonly Upload[]): void {
  uploads = next
  for (const listener of listeners) listener()
}

const update = (id: number, change: Partial<Upload>) =>
  set(uploads.map((each) => (each.id === id ? { ...each, ...change } : each)))

export const dismissUpload = (id: number) => {
  aborts.get(id)?.abort()
  set(uploads.filter((each) => each.id !== id))
}

/** Resolves when the last of them has ended, well or not. */
export async function startUploads(serverId: string, directory: string, files: readonly DroppedFile[]): Promise<void> {
  await Promise.all(files.map((dropped) => startUpload(serverId, directory, dropped)))
}

function startUpload(serverId: string, directory: string, { name, file }: DroppedFile): Promise<void> {
  const id = ++lastId
  const aborted = new AbortController()
  aborts.set(id, aborted)
  set([...uploads, { id, serverId, name, bytesDone: 0, bytesTotal: file.size, state: 'waiting' }])
  return new Promise((resolve) => {
    queue.push(async () => {
      await send(id, serverId, { directory, name }, file, aborted.signal)
      aborts.delete(id)
      resolve()
    })
    runNext()
  })
}

function runNext(): void {
  if (running >= AT_ONCE) return
  const next = queue.shift()
  if (!next) return
  running++
  next()
    .finally(() => {
      running--
      runNext()
    })
    .catch(() => {})
}

async function send(
  id: number,
  serverId: string,
  target: { directory: string; name: string },
  file: File,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return
  update(id, { state: 'sending' })
  try {
    const onProgress = (bytesDone: number, bytesTotal: number) => update(id, { bytesDone, bytesTotal })
    await client.files.upload(serverId, file, { ...target, signal, onProgress })
    update(id, { state: 'done', bytesDone: file.size })
    setTimeout(() => dismissUpload(id), DONE_SHOWN_MS)
  } catch (error) {
    if (!signal.aborted) update(id, { state: { error } })
  }
}

export function useUploads(serverId: string): readonly Upload[] {
  const all = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => uploads,
  )
  return all.filter((upload) => upload.serverId === serverId)
}
