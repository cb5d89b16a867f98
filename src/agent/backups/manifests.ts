// The manifests of a store as a whole.
import { isFailure } from '../../contract/errors.ts'
import { Damage, lastSegment, manifestBlob } from './format.ts'
import { readMarks } from './lock-marks.ts'
import { type Manifest, type ManifestMeta, openManifest } from './manifest.ts'
import type { Repository } from './repository.ts'

/** What reading manifests needs of a store. */
export type ManifestSource = Pick<Repository, 'blobs' | 'sealer'>

export interface ManifestName {
  serverId: string
  backupId: string
}

export async function manifestNames(repository: Pick<Repository, 'blobs'>, serverId?: string): Promise<ManifestName[]> {
  const names: ManifestName[] = []
  for await (const { name } of repository.blobs.list(
    serverId === undefined ? 'manifests/' : `manifests/${serverId}/`,
  )) {
    const [, owner] = name.split('/')
    if (owner !== undefined) names.push({ serverId: owner, backupId: lastSegment(name) })
  }
  return names
}

export interface ListedManifest {
  name: ManifestName
  /** With the lock as it is now. Null where not even the tail can be read. */
  meta: (ManifestMeta & { checksum: string }) | null
  /** Why it, or a part of it, cannot be read. */
  damage: string | null
}

/** `isThorough`: every entry of every manifest is read and checked, not only what it says of itself. */
export async function listManifests(
  repository: ManifestSource,
  { serverId, isThorough = false }: { serverId?: string | undefined; isThorough?: boolean } = {},
): Promise<ListedManifest[]> {
  const listed: ListedManifest[] = []
  const names = await manifestNames(repository, serverId)
  const marks = await readMarks(repository.blobs, serverId)
  for (const name of names) {
    let meta: ListedManifest['meta'] = null
    try {
      const manifest = await openManifest(repository.blobs, repository.sealer, name)
      const isLocked = marks.get(name.backupId) ?? manifest.meta.isLocked
      meta = { ...manifest.meta, checksum: manifest.checksum, isLocked }
      if (isThorough) for await (const _ of manifest.chunks());
      listed.push({ name, meta, damage: null })
    } catch (error) {
      // Deleted since it was listed.
      if (isFailure(error, 'not_found')) continue
      if (!(error instanceof Damage)) throw error
      listed.push({ name, meta, damage: error.message })
    }
  }
  return listed
}

/** The one to compare a tree with. A damaged one only makes the next backup slower. */
export async function latestManifest(repository: Repository, serverId: string): Promise<Manifest | undefined> {
  const known = repository.latest.get(serverId)
  if (known) {
    const manifest = await openManifest(repository.blobs, repository.sealer, { serverId, ...known }).catch((error) => {
      if (error instanceof Damage || isFailure(error, 'not_found')) return undefined
      throw error
    })
    if (manifest) return manifest
  }
  return await newestManifest(repository, serverId)
}

async function newestManifest(repository: Repository, serverId: string): Promise<Manifest | undefined> {
  let latest: Manifest | undefined
  const names = (await manifestNames(repository, serverId)).sort((a, b) => (a.backupId < b.backupId ? 1 : -1))
  for (const name of names.slice(0, CANDIDATES)) {
    try {
      const manifest = await openManifest(repository.blobs, repository.sealer, name)
      if (!latest || manifest.meta.startedAt > latest.meta.startedAt) latest = manifest
    } catch (error) {
      if (!(error instanceof Damage) && !isFailure(error, 'not_found')) throw error
    }
  }
  return latest
}

/** Backup ids sort by the time of their request; backups of one server may be run in a slightly different order. */
const CANDIDATES = 4

/** Durable once it returns. The blocks are given back by a reclaim. */
export function deleteManifest(repository: Repository, { serverId, backupId }: ManifestName): Promise<void> {
  return repository.blobs.delete(manifestBlob(serverId, backupId))
}
