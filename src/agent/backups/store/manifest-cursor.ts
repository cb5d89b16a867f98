// Goes through a manifest side by side with something else in the same order. Waits only where a chunk ends.
import { isFailure } from '../../../contract/errors.ts'
import type { StoredEntry } from '../format/entries.ts'
import { Damage } from '../format/format.ts'
import type { Manifest } from '../format/manifest.ts'

export interface ManifestCursor {
  /** The entry with that key, if there is one. Keys must be asked for in ascending order. */
  seek(key: string): StoredEntry | undefined | Promise<StoredEntry | undefined>
}

/** What a damaged chunk, or one of a backup deleted meanwhile, listed and all after it is read anew: slower, nothing lost. */
function orNothing(error: unknown): undefined {
  if (!(error instanceof Damage) && !isFailure(error, 'not_found')) throw error
}

export function createManifestCursor(manifest: Manifest | undefined): ManifestCursor {
  const chunks = manifest?.chunks()
  let chunk: StoredEntry[] = []
  let at = 0
  let isDone = chunks === undefined

  function within(key: string): StoredEntry | undefined {
    for (let entry = chunk[at]; entry && entry.key <= key; entry = chunk[at]) {
      at++
      if (entry.key === key) return entry
    }
    return undefined
  }

  async function beyond(key: string): Promise<StoredEntry | undefined> {
    for (;;) {
      const next = await chunks?.next().catch(orNothing)
      if (!next || next.done) {
        isDone = true
        return undefined
      }
      chunk = next.value
      at = 0
      const found = within(key)
      if (found || at < chunk.length) return found
    }
  }

  return {
    seek(key) {
      const found = within(key)
      return found || at < chunk.length || isDone ? found : beyond(key)
    },
  }
}
