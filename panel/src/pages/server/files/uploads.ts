// Uploads under way. They live outside the page, so that they go on while somebody looks at something else.
import { useSyncExternalStore } from 'react'
import { isApiError } from '../../../../../src/sdk/index.ts'
import { client } from '../../../api/client.ts'
import type { DroppedFile } from './dropped.ts'
import { forgetUpload, type KeptUpload, keepUploads, newKeptUpload, readKeptUploads } from './kept-uploads.ts'

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
  const kept = files.map(({ name, file }) => newKeptUpload({ serverId, directory, name, file }))
  // Not waited for: what is sent before it is kept is only sent again after a reload.
  void keepUploads(kept)
  await Promise.all(kept.map(startUpload))
}

function startUpload(kept: KeptUpload): Promise<void> {
  const { serverId, name, file } = kept
  const id = ++lastId
  const aborted = new AbortController()
  aborts.set(id, aborted)
  set([...uploads, { id, serverId, name, bytesDone: 0, bytesTotal: file.size, state: 'waiting' }])
  return new Promise((resolve) => {
    queue.push(async () => {
      await send(id, kept, aborted.signal)
      await forgetUpload(kept.key)
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

async function send(id: number, kept: KeptUpload, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  update(id, { state: 'sending' })
  try {
    await sendOrResume(id, kept, signal)
    update(id, { state: 'done', bytesDone: kept.file.size })
    setTimeout(() => dismissUpload(id), DONE_SHOWN_MS)
  } catch (error) {
    if (!signal.aborted) update(id, { state: { error } })
  }
}

async function sendOrResume(id: number, kept: KeptUpload, signal: AbortSignal): Promise<void> {
  const { serverId, directory, name, file, url } = kept
  const onProgress = (bytesDone: number, bytesTotal: number) => update(id, { bytesDone, bytesTotal })
  const onCreated = (created: string) => void keepUploads([{ ...kept, url: created }])
  const options = { directory, name, signal, onProgress, onCreated }
  try {
    await client.files.upload(serverId, file, url === null ? options : { ...options, resume: url })
  } catch (error) {
    // What had arrived is gone by now.
    if (url === null || !isApiError(error, 'not_found')) throw error
    await client.files.upload(serverId, file, options)
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

// With the page: what this tab was sending when it was reloaded goes on.
void readKeptUploads().then((kept) => Promise.all(kept.map(startUpload)))
