// What the store holds and what the mirror holds, by name and size.
import { BlobMissing, type BlobStore } from '../../blobs/store.ts'
import { fail } from '../../contract/errors.ts'
import { packBlob } from '../backups/format/format.ts'
import type { Repository } from '../backups/store/repository.ts'
import { type Blob, type Blobs, type Folder, folderOf, inFolder, type Listing, SENT_FOLDERS } from './mirror-plan.ts'

/** Names that `list` gives in one request of an object store. */
const LISTED_AT_ONCE = 1000
/** Before the names of packs of which a note says that only the mirror has them. */
const AWAY = 'away/'

/**
 * Under the shared lock, so that no reclaim is under way. Manifests first: the packs and parts of one that is listed were
 * there before it, so they are listed too. Notes of what is away last: they are written before their packs are deleted.
 */
export async function listStore(
  { writing, packs, doubtful }: Pick<Repository, 'writing' | 'packs' | 'doubtful'>,
  local: BlobStore,
  signal: AbortSignal,
): Promise<Listing> {
  using _shared = await writing.share(signal)
  const [manifests, locks, index] = [
    await blobsIn(local, 'manifests'),
    await blobsIn(local, 'locks'),
    await blobsIn(local, 'index'),
  ]
  const parts = await blobsIn(local, 'parts')
  const there = await blobsIn(local, 'packs')
  const away = new Set<string>()
  for await (const { name } of local.list(AWAY)) away.add(name.slice(AWAY.length))
  // Also those that were gone when the store was opened: the mirror may be the only place that has them.
  const known = new Set([...packs.keys(), ...doubtful])
  const lost = [...known].map(packBlob).filter((name) => !there.has(name) && !away.has(name))
  return { manifests, locks, index, parts, packs: there, away, lost }
}

async function blobsIn(blobs: BlobStore, folder: Folder | 'bundles'): Promise<Blobs> {
  const found: Blobs = new Map()
  for await (const { name, sizeBytes } of blobs.list(`${folder}/`)) found.set(name, sizeBytes)
  return found
}

export interface MirrorListing {
  blobs: Blobs
  bundles: Blobs
}

export async function listMirror(mirror: BlobStore): Promise<MirrorListing> {
  const all = await mirror.listAll?.()
  const blobs: Blobs = new Map()
  if (!all) {
    for (const folder of SENT_FOLDERS) for (const [name, size] of await blobsIn(mirror, folder)) blobs.set(name, size)
    return { blobs, bundles: await blobsIn(mirror, 'bundles') }
  }
  const bundles: Blobs = new Map()
  const sent: readonly string[] = SENT_FOLDERS
  for (const { name, sizeBytes } of all) {
    if (sent.includes(folderOf(name))) blobs.set(name, sizeBytes)
    else if (name.startsWith('bundles/')) bundles.set(name, sizeBytes)
  }
  return { blobs, bundles }
}

/**
 * An answer that all is well is not yet a blob: nothing relies on one before the mirror lists it in its full size. Only then
 * it is in the inventory.
 */
export async function confirmArrived(
  mirror: BlobStore,
  inventory: Blobs,
  folder: Folder,
  arrived: readonly Blob[],
): Promise<void> {
  const inMirror = inFolder(inventory, folder).length + arrived.length
  const incomplete = await findIncomplete(mirror, folder, arrived, inMirror)
  if (incomplete.length > 0) {
    const count = `${incomplete.length} of ${arrived.length}`
    throw fail('offsite_unreachable', `The off-site store does not have ${count} blobs that it has acknowledged.`)
  }
  for (const { name, sizeBytes } of arrived) inventory.set(name, sizeBytes)
}

/**
 * Those of the blobs that the mirror does not have whole. One request for each, or one for each thousand that are in the
 * folder, whichever is fewer.
 */
async function findIncomplete(
  mirror: BlobStore,
  folder: Folder,
  sent: readonly Blob[],
  inMirror: number,
): Promise<Blob[]> {
  if (sent.length === 0) return []
  const found = sent.length <= Math.ceil(inMirror / LISTED_AT_ONCE) ? await eachSize(mirror, sent) : undefined
  const sizes = found ?? (await blobsIn(mirror, folder))
  return sent.filter(({ name, sizeBytes }) => sizes.get(name) !== sizeBytes)
}

async function eachSize(mirror: BlobStore, blobs: readonly Blob[]): Promise<Blobs> {
  const sizes: Blobs = new Map()
  for (const { name } of blobs) {
    try {
      sizes.set(name, (await mirror.stat(name)).sizeBytes)
    } catch (error) {
      if (!(error instanceof BlobMissing)) throw error
    }
  }
  return sizes
}
