// The entries of a backup in the order of the walk. One that is still being read holds up those after it; from there on
// they go to the manifest, and are counted.
import type { Entry, StoredEntry } from '../format/entries.ts'
import type { ManifestWriter } from '../format/manifest-writer.ts'

export interface QueuedEntry {
  entry: Entry
  /** The order key of its path. */
  key: string
  /** The entry, where it is that of the last manifest, unchanged. */
  kept: StoredEntry | undefined
  isReady: boolean
  /** Could not be read, or was gone. */
  isDropped: boolean
  firstLink: QueuedEntry | undefined
}

export interface EntryQueue {
  readonly length: number
  readonly counts: Readonly<{ fileCount: number; directoryCount: number; symlinkCount: number; sizeBytes: number }>
  push(queued: QueuedEntry): void
  /** Writes the entries that wait for none before them. */
  drain(): Promise<void>
}

export function createEntryQueue(
  manifest: Pick<ManifestWriter, 'add' | 'addAsItStands'>,
  report: (done: { filesDone: number; bytesDone: number }) => void,
): EntryQueue {
  const waiting: QueuedEntry[] = []
  const counts = { fileCount: 0, directoryCount: 0, symlinkCount: 0, sizeBytes: 0 }

  function count(entry: Entry): void {
    if (entry.kind === 'file') counts.fileCount++
    else if (entry.kind === 'directory') counts.directoryCount++
    else counts.symlinkCount++
    if (entry.kind === 'file' && entry.hardLink === null) counts.sizeBytes += entry.sizeBytes
  }

  return {
    get length() {
      return waiting.length
    },
    counts,
    push: (queued) => void waiting.push(queued),
    async drain() {
      let done = 0
      for (let head = waiting[done]; head?.isReady; head = waiting[done]) {
        done++
        const entry = linked(head)
        if (!entry) continue
        count(entry)
        const written = head.kept ? manifest.addAsItStands(head.kept) : manifest.add(entry, head.key)
        if (written) await written
      }
      waiting.splice(0, done)
      report({ filesDone: counts.fileCount, bytesDone: counts.sizeBytes })
    },
  }
}

/** Content, size and times of a further link are those of the first, which stands before it. */
function linked(queued: QueuedEntry): Entry | undefined {
  const first = queued.firstLink
  if (!first) return queued.isDropped ? undefined : queued.entry
  if (first.isDropped) return undefined
  return { ...first.entry, path: queued.entry.path, hardLink: first.entry.path }
}
