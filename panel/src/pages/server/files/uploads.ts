// Uploads under way. They live outside the page, so that they go on while somebody looks at something else. Each belongs to whoever
// began it: where their session ends in the middle, what is left waits until they have signed in again.
import { useSyncExternalStore } from 'react'
import { isApiError } from '../../../../../src/sdk/index.ts'
import { useSession } from '../../../api/access/session.ts'
import { askWhoIsSignedIn, onSignedIn, signedInId } from '../../../api/access/who.ts'
import { client } from '../../../api/client.ts'
import type { DroppedFile } from './dropped.ts'
import { forgetUpload, type KeptUpload, keepUploads, newKeptUpload, readKeptUploads } from './kept-uploads.ts'

export interface Upload {
  id: number
  owner: string
  serverId: string
  name: string
  bytesDone: number
  bytesTotal: number
  state: 'waiting' | 'sending' | 'done' | { error: unknown }
}

interface Queued {
  id: number
  kept: KeptUpload
  signal: AbortSignal
  onEnd: () => void
}

const AT_ONCE = 3
const DONE_SHOWN_MS = 3000
let uploads: readonly Upload[] = []
let lastId = 0
const listeners = new Set<() => void>()
const aborts = new Map<number, AbortController>()
const queue: Queued[] = []
/** Those of the queue and those under way, by the key under which they are kept. */
const known = new Set<string>()
let running = 0
/** The service no longer knows the session, and nobody has signed in since. */
let isRefused = false

/** A thousand small files change it several thousand times: whoever shows it is told a few times a second. */
const TELL_EVERY_MS = 100
let isTelling = false

function set(next: readonly Upload[]): void {
  uploads = next
  if (isTelling) return
  isTelling = true
  setTimeout(() => {
    isTelling = false
    for (const listener of listeners) listener()
  }, TELL_EVERY_MS)
}

const update = (id: number, change: Partial<Upload>) =>
  set(uploads.map((each) => (each.id === id ? { ...each, ...change } : each)))

export const dismissUpload = (id: number) => {
  aborts.get(id)?.abort()
  set(uploads.filter((each) => each.id !== id))
  runNext()
}

/** Resolves when the last of them has ended, well or not. */
export async function startUploads(serverId: string, directory: string, files: readonly DroppedFile[]): Promise<void> {
  const owner = signedInId()
  if (owner === null) return
  const kept = files.map(({ name, file }) => newKeptUpload({ owner, serverId, directory, name, file }))
  // Not waited for: what is sent before it is kept is only sent again after a reload.
  void keepUploads(kept)
  await Promise.all(kept.map(startUpload))
}

function startUpload(kept: KeptUpload): Promise<void> {
  const { owner, serverId, name, file } = kept
  const id = ++lastId
  const aborted = new AbortController()
  aborts.set(id, aborted)
  known.add(kept.key)
  set([...uploads, { id, owner, serverId, name, bytesDone: 0, bytesTotal: file.size, state: 'waiting' }])
  return new Promise((resolve) => {
    queue.push({ id, kept, signal: aborted.signal, onEnd: resolve })
    runNext()
  })
}

function runNext(): void {
  if (running >= AT_ONCE) return
  const next = takeNext()
  if (!next) return
  running++
  run(next)
    .finally(() => {
      running--
      runNext()
    })
    .catch(() => {})
  runNext()
}

/** Of whoever is signed in. One that was cancelled while it waited needs nobody. */
function takeNext(): Queued | undefined {
  const mine = isRefused ? null : signedInId()
  const at = queue.findIndex(({ kept, signal }) => signal.aborted || kept.owner === mine)
  return at < 0 ? undefined : queue.splice(at, 1)[0]
}

async function run(queued: Queued): Promise<void> {
  const { id, kept, onEnd } = queued
  if (!(await send(queued))) {
    queue.unshift(queued)
    return
  }
  known.delete(kept.key)
  await forgetUpload(kept.key)
  aborts.delete(id)
  onEnd()
}

/** False where it has to wait for its owner to sign in again. */
async function send({ id, kept, signal }: Queued): Promise<boolean> {
  if (signal.aborted) return true
  update(id, { state: 'sending' })
  try {
    await sendOrResume(id, kept, signal)
    update(id, { state: 'done', bytesDone: kept.file.size })
    setTimeout(() => dismissUpload(id), DONE_SHOWN_MS)
  } catch (error) {
    if (signal.aborted) return true
    if (isApiError(error, 'unauthenticated')) {
      isRefused = true
      askWhoIsSignedIn()
      update(id, { state: 'waiting' })
      return false
    }
    update(id, { state: { error } })
  }
  return true
}

async function sendOrResume(id: number, kept: KeptUpload, signal: AbortSignal): Promise<void> {
  const { serverId, directory, name, file, url } = kept
  const onProgress = (bytesDone: number, bytesTotal: number) => update(id, { bytesDone, bytesTotal })
  const onCreated = (created: string) => {
    kept.url = created
    void keepUploads([kept])
  }
  const options = { directory, name, signal, onProgress, onCreated }
  try {
    await client.files.upload(serverId, file, url === null ? options : { ...options, resume: url })
  } catch (error) {
    // What had arrived is gone by now.
    if (url === null || !isApiError(error, 'not_found')) throw error
    await client.files.upload(serverId, file, options)
  }
}

/** Those of whoever is signed in. */
export function useUploads(serverId: string): readonly Upload[] {
  const owner = useSession().data?.id
  const all = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => uploads,
  )
  return all.filter((upload) => upload.serverId === serverId && upload.owner === owner)
}

const readFor = new Set<string>()

/** What they were sending when this tab was reloaded, or when their session ended, goes on. */
async function resume(): Promise<void> {
  const owner = signedInId()
  if (owner === null) return
  isRefused = false
  runNext()
  if (readFor.has(owner)) return
  readFor.add(owner)
  const kept = await readKeptUploads(owner)
  await Promise.all(kept.filter(({ key }) => !known.has(key)).map(startUpload))
}

onSignedIn(() => void resume())
void resume()
