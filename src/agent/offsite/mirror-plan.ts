// What a run has to do, decided from what the store and the mirror hold. Nothing is read or written here.
import type { BlobSum } from '../../contract/agent/agent-offsite.ts'

/** Sizes by name. */
export type Blobs = Map<string, number>

/** Blobs on their way at one time: what they hold in memory is bounded by this and by the size of a chunk. */
export const BLOBS_AT_ONCE = 4

/** In the order in which they are sent, so that at every instant a manifest in the mirror has all that it needs. */
export const SENT_FOLDERS = ['packs', 'index', 'parts', 'manifests', 'locks'] as const
export type Folder = (typeof SENT_FOLDERS)[number]

/** In the order in which they are removed: what needs something goes before it. */
export const REMOVED_FOLDERS = ['manifests', 'locks', 'parts', 'index', 'packs'] as const satisfies readonly Folder[]

/** What the store holds, as of one instant. */
export interface Listing extends Record<Folder, Blobs> {
  /** Packs that by the store's own decision only the mirror has. */
  away: Set<string>
  /** Packs that are gone though nobody has deleted them. */
  lost: string[]
}

export interface Blob {
  name: string
  sizeBytes: number
}

export const folderOf = (name: string) => name.slice(0, name.indexOf('/')) as Folder

export const inFolder = (blobs: Blobs, folder: Folder): Blob[] =>
  [...blobs].flatMap(([name, sizeBytes]) => (folderOf(name) === folder ? [{ name, sizeBytes }] : []))

/** What the mirror lacks, or has in another size. A mark that locks and one that does not differ in their size. */
export function missingOf(folder: Folder, listing: Listing, mirror: Blobs): Blob[] {
  return inFolder(listing[folder], folder).filter(({ name, sizeBytes }) => mirror.get(name) !== sizeBytes)
}

/** What the mirror has and the store does not. */
export function surplusOf(folder: Folder, listing: Listing, mirror: Blobs): Blob[] {
  return inFolder(mirror, folder).filter(({ name }) => !listing[folder].has(name) && !listing.away.has(name))
}

export function sumOf(blobs: readonly Blob[]): BlobSum {
  return { blobs: blobs.length, bytes: blobs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) }
}

/** What a manifest is called there is whose it is. */
export function backupOf(manifest: string): { serverId: string; backupId: string } {
  const [, serverId = '', backupId = ''] = manifest.split('/')
  return { serverId, backupId }
}

export function holdingsOf(blobs: Blobs): { bytes: number; backups: number } {
  let bytes = 0
  for (const sizeBytes of blobs.values()) bytes += sizeBytes
  return { bytes, backups: inFolder(blobs, 'manifests').length }
}
