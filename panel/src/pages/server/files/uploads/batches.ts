// Which of the waiting uploads go together: many small files take one request, a large one goes in pieces of its own.
import type { KeptUpload } from './kept-uploads.ts'

const SMALL_BYTES = 256 * 1024
/** As many as an entry of the activity names. */
const TOGETHER_FILES = 100
/** Little enough that a slow connection shows progress, and that not much is sent again after a break. */
const TOGETHER_BYTES = 2 * 1024 * 1024
/** What a form cannot carry in a name without changing it. */
const NOT_IN_FORMS = /["%\\\r\n]/

export interface Queued {
  kept: KeptUpload
  /** Sent together with others it was refused: on its own it hears why, and the others go on. */
  isAlone: boolean
}

const isSmall = ({ kept: { name, file, url }, isAlone }: Queued) =>
  !isAlone && url === null && file.size <= SMALL_BYTES && !NOT_IN_FORMS.test(name)

const folderOf = ({ kept: { owner, serverId, directory } }: Queued) => JSON.stringify([owner, serverId, directory])

/** Takes the next out of the queue, and what can go with it: those after it for the same folder, no name twice. */
export function takeBatch<Q extends Queued>(queue: Q[], isReady: (queued: Q) => boolean): Q[] {
  const first = queue.find(isReady)
  if (!first) return []
  const batch = isSmall(first) ? smallOnesFrom(queue, first, isReady) : [first]
  const taken = new Set(batch)
  queue.splice(0, queue.length, ...queue.filter((queued) => !taken.has(queued)))
  return batch
}

function smallOnesFrom<Q extends Queued>(queue: readonly Q[], first: Q, isReady: (queued: Q) => boolean): Q[] {
  const folder = folderOf(first)
  const names = new Set<string>()
  const batch: Q[] = []
  let bytes = 0
  for (const queued of queue) {
    const { name, file } = queued.kept
    if (names.has(name) || !isSmall(queued) || !isReady(queued) || folderOf(queued) !== folder) continue
    bytes += file.size
    if (bytes > TOGETHER_BYTES) break
    names.add(name)
    batch.push(queued)
    if (batch.length === TOGETHER_FILES) break
  }
  return batch
}
