// Uploads under way. They live outside the page, so that they go on while somebody looks at something else. Each belongs to whoever
// began it: where their session ends in the middle, what is left waits until they have signed in again.
import { isApiError } from '../../../../../../src/sdk/index.ts'
import { askWhoIsSignedIn, onSignedIn, signedInId } from '../../../../api/access/who.ts'
import { type Queued, takeBatch } from './batches.ts'
import type { DroppedFile } from './dropped.ts'
import { forgetUploads, type KeptUpload, keepUploads, newKeptUpload, readKeptUploads } from './kept-uploads.ts'
import { isFaultOfOne, sendOne, sendTogether } from './send.ts'
import { addUploads, removeUploads, updateUploads } from './shown-uploads.ts'

interface Waiting extends Queued {
  id: number
  aborted: AbortController
  onEnd: () => void
}

const AT_ONCE = 3
const DONE_SHOWN_MS = 3000
let lastId = 0
const unfinished = new Map<number, Waiting>()
const queue: Waiting[] = []
/** Those of the queue and those under way, by the key under which they are kept. */
const known = new Set<string>()
let running = 0
/** The service no longer knows the session, and nobody has signed in since. */
let isRefused = false

const idsOf = (batch: readonly Waiting[]) => batch.map(({ id }) => id)

export const dismissUpload = (id: number) => {
  unfinished.get(id)?.aborted.abort()
  removeUploads([id])
  runNext()
}

/** Resolves when the last of them has ended, well or not. */
export async function startUploads(serverId: string, directory: string, files: readonly DroppedFile[]): Promise<void> {
  const owner = signedInId()
  if (owner === null) return
  const kept = files.map(({ name, file }) => newKeptUpload({ owner, serverId, directory, name, file }))
  // Not waited for: what is sent before it is kept is only sent again after a reload.
  void keepUploads(kept)
  await enqueue(kept)
}

async function enqueue(uploads: readonly KeptUpload[]): Promise<void> {
  const ends = uploads.map((kept) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = { id: ++lastId, kept, isAlone: false, aborted: new AbortController(), onEnd: resolve }
    unfinished.set(waiting.id, waiting)
    known.add(kept.key)
    queue.push(waiting)
    return { waiting, promise }
  })
  addUploads(
    ends.map(({ waiting: { id, kept } }) => {
      const { owner, serverId, name, file } = kept
      return { id, owner, serverId, name, bytesDone: 0, bytesTotal: file.size, state: 'waiting' }
    }),
  )
  runNext()
  await Promise.all(ends.map(({ promise }) => promise))
}

function runNext(): void {
  while (running < AT_ONCE) {
    const batch = takeBatch(queue, isReady)
    if (batch.length === 0) return
    running++
    run(batch)
      .finally(() => {
        running--
        runNext()
      })
      .catch(() => {})
  }
}

/** Of whoever is signed in. One that was cancelled while it waited needs nobody. */
const isReady = ({ kept, aborted }: Waiting) => aborted.signal.aborted || (!isRefused && kept.owner === signedInId())

async function run(batch: Waiting[]): Promise<void> {
  const [cancelled, wanted] = partition(batch, ({ aborted }) => aborted.signal.aborted)
  await end(cancelled)
  if (wanted.length === 0) return
  updateUploads(idsOf(wanted), () => ({ state: 'sending' }))
  try {
    await send(wanted)
    await succeed(wanted)
  } catch (error) {
    await settle(wanted, error)
  }
}

function send(batch: readonly Waiting[]): Promise<void> {
  const [first] = batch
  const signal = AbortSignal.any(batch.map(({ aborted }) => aborted.signal))
  if (!first || batch.length > 1)
    return sendTogether(
      batch.map(({ kept }) => kept),
      signal,
    )
  return sendOne(first.kept, signal, (bytesDone) => updateUploads([first.id], () => ({ bytesDone })))
}

async function succeed(batch: readonly Waiting[]): Promise<void> {
  const ids = idsOf(batch)
  updateUploads(ids, ({ bytesTotal }) => ({ state: 'done', bytesDone: bytesTotal }))
  setTimeout(() => removeUploads(ids), DONE_SHOWN_MS)
  await end(batch)
}

async function settle(batch: readonly Waiting[], error: unknown): Promise<void> {
  const [cancelled, wanted] = partition(batch, ({ aborted }) => aborted.signal.aborted)
  await end(cancelled)
  if (isApiError(error, 'unauthenticated')) {
    isRefused = true
    askWhoIsSignedIn()
    return putBack(wanted)
  }
  // The others of a batch were only stopped with it.
  if (cancelled.length > 0) return putBack(wanted)
  if (wanted.length > 1 && isFaultOfOne(error))
    return putBack(wanted.map((each) => Object.assign(each, { isAlone: true })))
  updateUploads(idsOf(wanted), () => ({ state: { error } }))
  await end(wanted)
}

function putBack(batch: readonly Waiting[]): void {
  updateUploads(idsOf(batch), () => ({ state: 'waiting' }))
  queue.unshift(...batch)
}

async function end(batch: readonly Waiting[]): Promise<void> {
  for (const { id, kept } of batch) {
    unfinished.delete(id)
    known.delete(kept.key)
  }
  await forgetUploads(batch.map(({ kept }) => kept.key))
  for (const { onEnd } of batch) onEnd()
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))]
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
  await enqueue(kept.filter(({ key }) => !known.has(key)))
}

onSignedIn(() => void resume())
void resume()
