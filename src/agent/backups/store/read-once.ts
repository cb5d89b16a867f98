// An off-site store as a recovery reads it. What is listed, and every blob that is small or checked before it is copied, is
// asked for once, however often it is needed.
import type { BlobInfo, BlobStore } from '../../../blobs/store.ts'
import { FORMAT_BLOB } from '../format/format.ts'

/** Whatever their size: those that several manifests are being read from. */
const HELD_AT_LEAST = 16
/** Beyond these, in memory until they are copied. */
const HELD_BYTES = 64 * 1024 * 1024

const isHeld = (name: string) => name === FORMAT_BLOB || /^(?:manifests|parts)\//.test(name)

/** What it lists is of one instant. Whoever opens a blob knows that it is there. */
export function readOnce(blobs: BlobStore): BlobStore {
  /** In the order of their last use. */
  const held = new Map<string, Promise<Uint8Array>>()
  const sizes = new Map<string, number>()
  let heldBytes = 0
  let listing: Promise<BlobInfo[] | undefined> | undefined

  function whole(name: string): Promise<Uint8Array> {
    const known = held.get(name)
    const reading = known ?? blobs.get(name)
    held.delete(name)
    held.set(name, reading)
    if (!known)
      void reading.then(
        ({ length }) => keep(name, length),
        () => held.delete(name),
      )
    return reading
  }

  function keep(name: string, length: number): void {
    sizes.set(name, length)
    heldBytes += length
    for (const oldest of [...held.keys()].slice(0, -HELD_AT_LEAST)) {
      if (heldBytes <= HELD_BYTES) return
      heldBytes -= sizes.get(oldest) ?? 0
      sizes.delete(oldest)
      held.delete(oldest)
    }
  }

  const get: BlobStore['get'] = async (name, range, into) => {
    if (!isHeld(name)) return await blobs.get(name, range, into)
    const bytes = await whole(name)
    return range ? bytes.subarray(range.offset, range.offset + range.length) : bytes
  }

  return {
    ...blobs,
    get,
    open: async (name) => ({ get: (range, into) => get(name, range, into), close: async () => {} }),
    stat: async (name) =>
      isHeld(name) ? { name, sizeBytes: (await whole(name)).length, modifiedAt: 0 } : await blobs.stat(name),
    async *list(prefix) {
      listing ??= blobs.listAll?.() ?? Promise.resolve(undefined)
      const all = await listing
      if (all) yield* all.filter(({ name }) => name.startsWith(prefix))
      else yield* blobs.list(prefix)
    },
  }
}
