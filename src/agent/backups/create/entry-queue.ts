// The entries of a backup in the order of the walk. One that is still being read holds up those after it; from there on
// they go to the manifest, and are counted.
import { type Chunk, count, type Entry, type EntryCounts, NO_ENTRIES, type StoredEntry } from '../format/entries.ts'
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

interface QueuedChunk {
  chunk: Chunk
  holds: EntryCounts
  isReady: true
}

/** As many entries take about as much memory. */
const lengthOf = ({ raw }: Chunk) => Math.max(64, Math.ceil(raw.length / 1024))

export interface EntryQueue {
  /** In entries, or what takes as much memory. */
  readonly length: number
  readonly counts: Readonly<EntryCounts>
  push(queued: QueuedEntry): void
  /** All entries of a chunk of the last manifest, unchanged. */
  pushChunk(chunk: Chunk, counts: EntryCounts): void
  /** Writes the entries that wait for none before them. */
  drain(): Promise<void>
}

export function createEntryQueue(
  manifest: Pick<ManifestWriter, 'add' | 'addAsItStands' | 'addChunk'>,
  report: (done: { filesDone: number; bytesDone: number }) => void,
  onDropped: (link: Entry, first: Entry) => void,
): EntryQueue {
  const waiting: (QueuedEntry | QueuedChunk)[] = []
  const counts = { ...NO_ENTRIES }
  let length = 0

  function write(head: QueuedEntry): Promise<void> | undefined {
    length--
    const entry = linked(head)
    if (!entry) {
      if (head.firstLink) onDropped(head.entry, head.firstLink.entry)
      return undefined
    }
    count(counts, entry)
    return head.kept ? manifest.addAsItStands(head.kept) : manifest.add(entry, head.key)
  }

  function writeChunk({ chunk, holds }: QueuedChunk): Promise<void> | undefined {
    length -= lengthOf(chunk)
    counts.fileCount += holds.fileCount
    counts.directoryCount += holds.directoryCount
    counts.symlinkCount += holds.symlinkCount
    counts.sizeBytes += holds.sizeBytes
    return manifest.addChunk(chunk)
  }

  return {
    get length() {
      return length
    },
    counts,
    push(queued) {
      waiting.push(queued)
      length++
    },
    pushChunk(chunk, holds) {
      waiting.push({ chunk, holds, isReady: true })
      length += lengthOf(chunk)
    },
    async drain() {
      let done = 0
      for (let head = waiting[done]; head?.isReady; head = waiting[done]) {
        done++
        const written = 'chunk' in head ? writeChunk(head) : write(head)
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
