// An off-site store as a recovery reads it. What is listed, and every blob that is small or checked before it is copied, is
// asked for once, however often it is needed; small ones many at a time, where they are in a bundle.
import { type BlobInfo, type BlobStore, isLost } from '../../../blobs/store.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { decodeBundle } from '../format/bundle.ts'
import { Damage, FORMAT_BLOB } from '../format/format.ts'

/** Whatever their size: those that several manifests are being read from. */
const HELD_AT_LEAST = 16
/** Beyond these, in memory until they are copied. */
const HELD_BYTES = 64 * 1024 * 1024

const BUNDLES_AT_ONCE = 8
const BUNDLED = ['index/', 'parts/', 'manifests/']

const isBundled = (name: string) => BUNDLED.some((prefix) => name.startsWith(prefix))
const isHeld = (name: string) => name === FORMAT_BLOB || /^(?:manifests|parts|index)\//.test(name)

/** What it lists is of one instant. Whoever opens a blob knows that it is there. */
export function readOnce(blobs: BlobStore): BlobStore {
  /** In the order of their last use. */
  const held = new Map<string, Promise<Uint8Array>>()
  const sizes = new Map<string, number>()
  let heldBytes = 0
  let listing: Promise<BlobInfo[] | undefined> | undefined
  let unbundling: Promise<void> | undefined

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

  async function* list(prefix: string): AsyncGenerator<BlobInfo, void, undefined> {
    listing ??= blobs.listAll?.() ?? Promise.resolve(undefined)
    const all = await listing
    if (all) yield* all.filter(({ name }) => name.startsWith(prefix))
    else yield* blobs.list(prefix)
  }

  /** What a bundle has counts as long as the store itself lists it, in that size. */
  async function unbundle(): Promise<void> {
    const bundles = await Array.fromAsync(list('bundles/'))
    if (bundles.length === 0) return
    const listed = new Map<string, number>()
    for (const prefix of BUNDLED) for await (const { name, sizeBytes } of list(prefix)) listed.set(name, sizeBytes)
    await forEachAtOnce(bundles, BUNDLES_AT_ONCE, async ({ name: bundle }) => {
      for (const { name, bytes } of await readBundle(bundle)) {
        if (held.has(name) || listed.get(name) !== bytes.length) continue
        held.set(name, Promise.resolve(bytes))
        keep(name, bytes.length)
      }
    })
  }

  /** Without it each blob is asked for by itself. */
  async function readBundle(bundle: string) {
    try {
      return decodeBundle(bundle, await blobs.get(bundle))
    } catch (error) {
      if (error instanceof Damage || isLost(error)) return []
      throw error
    }
  }

  const get: BlobStore['get'] = async (name, range, into) => {
    if (isBundled(name)) {
      unbundling ??= unbundle()
      await unbundling
    }
    if (!isHeld(name) && !held.has(name)) return await blobs.get(name, range, into)
    const bytes = await whole(name)
    return range ? bytes.subarray(range.offset, range.offset + range.length) : bytes
  }

  return {
    ...blobs,
    get,
    open: async (name) => ({ get: (range, into) => get(name, range, into), close: async () => {} }),
    stat: async (name) =>
      isHeld(name) ? { name, sizeBytes: (await get(name)).length, modifiedAt: 0 } : await blobs.stat(name),
    list,
  }
}
