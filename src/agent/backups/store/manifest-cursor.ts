// Goes through a manifest side by side with something else in the same order. Waits only where a chunk ends.
import { isFailure } from '../../../contract/errors.ts'
import type { ChunkPlace, StoredEntry } from '../format/entries.ts'
import { Damage } from '../format/format.ts'
import type { Manifest } from '../format/manifest.ts'

export interface ManifestCursor {
  /** The entry with that key, if there is one. Keys must be asked for in ascending order. */
  seek(key: string): StoredEntry | undefined | Promise<StoredEntry | undefined>
  /** Nothing is asked for that is before the chunk in that of the places. */
  skipTo(index: number): void
}

/** What a damaged chunk listed is read anew, and what any listed after the backup was deleted: slower, nothing lost. */
export function createManifestCursor(
  manifest: Pick<Manifest, 'places' | 'chunkAt'> | undefined,
  onDamage: (place: ChunkPlace) => void = () => {},
): ManifestCursor {
  const places = manifest?.places ?? []
  let next = 0
  let chunk: StoredEntry[] = []
  let at = 0

  function within(key: string): StoredEntry | undefined {
    for (let entry = chunk[at]; entry && entry.key <= key; entry = chunk[at]) {
      at++
      if (entry.key === key) return entry
    }
    return undefined
  }

  async function nextChunk(): Promise<StoredEntry[]> {
    const place = places[next++]
    try {
      return (await manifest?.chunkAt(next - 1)) ?? []
    } catch (error) {
      if (isFailure(error, 'not_found')) next = places.length
      else if (error instanceof Damage && place) onDamage(place)
      else throw error
      return []
    }
  }

  async function beyond(key: string): Promise<StoredEntry | undefined> {
    while (next < places.length) {
      chunk = await nextChunk()
      at = 0
      const found = within(key)
      if (found || at < chunk.length) return found
    }
    return undefined
  }

  return {
    seek(key) {
      const found = within(key)
      return found || at < chunk.length || next === places.length ? found : beyond(key)
    },
    skipTo(index) {
      if (index < next) return
      next = index
      chunk = []
      at = 0
    },
  }
}
