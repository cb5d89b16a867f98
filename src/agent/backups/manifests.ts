// The manifests of a store as a whole.
import { Damage, lastSegment, manifestBlob } from './format.ts'
import { type Manifest, type ManifestMeta, openManifest } from './manifest.ts'
import type { Repository } from './repository.ts'

export interface ManifestName {
  serverId: string
  backupId: string
}

export async function manifestNames(repository: Repository, serverId?: string): Promise<ManifestName[]> {
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
  meta: (ManifestMeta & { checksum: string }) | null
  /** Why it cannot be read. */
  damage: string | null
}

export async function listManifests(repository: Repository, serverId?: string): Promise<ListedManifest[]> {
  const listed: ListedManifest[] = []
  for (const name of await manifestNames(repository, serverId)) {
    try {
      const { meta, checksum } = await openManifest(repository.blobs, repository.sealer, name)
      listed.push({ name, meta: { ...meta, checksum }, damage: null })
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      listed.push({ name, meta: null, damage: error.message })
    }
  }
  return listed
}

/** The one to compare a tree with. A damaged one only makes the next backup slower. */
export async function latestManifest(repository: Repository, serverId: string): Promise<Manifest | undefined> {
  let latest: Manifest | undefined
  const names = (await manifestNames(repository, serverId)).sort((a, b) => (a.backupId < b.backupId ? 1 : -1))
  for (const name of names.slice(0, CANDIDATES)) {
    try {
      const manifest = await openManifest(repository.blobs, repository.sealer, name)
      if (!latest || manifest.meta.startedAt > latest.meta.startedAt) latest = manifest
    } catch (error) {
      if (!(error instanceof Damage)) throw error
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
