// What the store holds and what the mirror holds, by name and size.
import { BlobMissing, type BlobStore } from '../../blobs/store.ts'
import { Damage, packBlob, partBlob } from '../backups/format/format.ts'
import { type ManifestName, type ManifestSource, manifestNames, openIfThere } from '../backups/store/manifests.ts'
import type { Repository } from '../backups/store/repository.ts'
import { type Blob, type Blobs, type Folder, type Listing, SENT_FOLDERS } from './mirror-plan.ts'

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

/** Whether a manifest needs one of the parts. One that cannot be read might. */
export async function isSomeNeeded(store: ManifestSource, parts: readonly Blob[]): Promise<boolean> {
  const names = new Set(parts.map(({ name }) => name))
  for (const serverId of new Set(parts.map(({ name }) => name.split('/')[1] ?? '')))
    for (const manifest of await manifestNames(store, serverId))
      if (await isNamedBy(store, manifest, names)) return true
  return false
}

async function isNamedBy(store: ManifestSource, name: ManifestName, parts: ReadonlySet<string>): Promise<boolean> {
  try {
    const named = (await openIfThere(store, name))?.parts ?? []
    return named.some(({ id }) => parts.has(partBlob(name.serverId, id)))
  } catch (error) {
    if (error instanceof Damage) return true
    throw error
  }
}

async function blobsIn(blobs: BlobStore, folder: Folder): Promise<Blobs> {
  const found: Blobs = new Map()
  for await (const { name, sizeBytes } of blobs.list(`${folder}/`)) found.set(name, sizeBytes)
  return found
}

export async function listMirror(mirror: BlobStore): Promise<Blobs> {
  const found: Blobs = new Map()
  for (const folder of SENT_FOLDERS) for (const [name, size] of await blobsIn(mirror, folder)) found.set(name, size)
  return found
}

/**
 * Those of the blobs that the mirror does not have whole, whatever it has acknowledged. One request for each, or one for
 * each thousand that are in the folder, whichever is fewer.
 */
export async function findIncomplete(
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
