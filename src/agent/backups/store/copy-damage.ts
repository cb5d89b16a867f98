// Blobs that are known to be damaged in the off-site copy, kept in the store until the mirror has replaced them.
import { BlobMissing, type BlobStore } from '../../../blobs/store.ts'
import { createMutex } from '../../../kit/waiting/mutex.ts'
import { COPY_DAMAGE_BLOB } from '../format/format.ts'

export interface CopyDamage {
  /** Their names. */
  list(): Promise<Set<string>>
  /** Durable once it returns. */
  add(names: readonly string[]): Promise<void>
  remove(names: readonly string[]): Promise<void>
}

export function createCopyDamage(blobs: BlobStore): CopyDamage {
  const inTurn = createMutex()

  /** A list that cannot be read is none: what is damaged is found again. */
  async function list(): Promise<Set<string>> {
    try {
      const { blobs: names } = JSON.parse(Buffer.from(await blobs.get(COPY_DAMAGE_BLOB)).toString())
      return new Set(names as string[])
    } catch (error) {
      if (error instanceof BlobMissing || error instanceof SyntaxError) return new Set()
      throw error
    }
  }

  function change(changed: (names: Set<string>) => Set<string>): Promise<void> {
    return inTurn(async () => {
      const names = changed(await list())
      if (names.size === 0) await blobs.delete(COPY_DAMAGE_BLOB)
      else await blobs.put(COPY_DAMAGE_BLOB, Buffer.from(`${JSON.stringify({ blobs: [...names] })}\n`))
    })
  }

  return {
    list,
    add: async (added) => (added.length === 0 ? undefined : change((names) => names.union(new Set(added)))),
    remove: async (removed) =>
      removed.length === 0 ? undefined : change((names) => names.difference(new Set(removed))),
  }
}
