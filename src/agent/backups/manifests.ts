// The manifests of a store as a whole.
import type { StoredBackup } from '../../contract/agent-backups.ts'
import { isFailure } from '../../contract/errors.ts'
import { Damage, lastSegment, manifestBlob } from './format.ts'
import { readMarks } from './lock-marks.ts'
import { type Manifest, openManifest } from './manifest.ts'
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

/** Undefined where it is gone: backups are deleted at any time, whoever reads the store. */
export async function openIfThere(
  { blobs, sealer }: ManifestSource,
  name: ManifestName,
): Promise<Manifest | undefined> {
  try {
    return await openManifest(blobs, sealer, name)
  } catch (error) {
    if (isFailure(error, 'not_found')) return undefined
    throw error
  }
}

/**
 * With the locks as they are now. `isThorough`: every entry of every manifest is read and checked, not only what it says
 * of itself.
 */
export async function listManifests(
  repository: ManifestSource,
  { serverId, isThorough = false }: { serverId?: string | undefined; isThorough?: boolean } = {},
): Promise<StoredBackup[]> {
  const listed: StoredBackup[] = []
  const names = await manifestNames(repository, serverId)
  const marks = await readMarks(repository.blobs, serverId)
  for (const name of names) {
    let backup: StoredBackup['backup'] = null
    try {
      const manifest = await openIfThere(repository, name)
      if (!manifest) continue
      const isLocked = marks.get(name.backupId) ?? manifest.meta.isLocked
      backup = { ...manifest.meta, checksum: manifest.checksum, isLocked }
      if (isThorough) for await (const _ of manifest.rawChunks());
      listed.push({ ...name, backup, damage: null })
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      listed.push({ ...name, backup, damage: error.message })
    }
  }
  return listed
}

/** The one to compare a tree with. A damaged one only makes the next backup slower. */
export async function latestManifest(repository: Repository, serverId: string): Promise<Manifest | undefined> {
  const known = repository.latest.get(serverId)
  const manifest = known && (await openIfSound(repository, { serverId, ...known }))
  return manifest ?? (await newestManifest(repository, serverId))
}

async function newestManifest(repository: Repository, serverId: string): Promise<Manifest | undefined> {
  let latest: Manifest | undefined
  const names = (await manifestNames(repository, serverId)).sort((a, b) => (a.backupId < b.backupId ? 1 : -1))
  for (const name of names.slice(0, CANDIDATES)) {
    const manifest = await openIfSound(repository, name)
    if (manifest && (!latest || manifest.meta.startedAt > latest.meta.startedAt)) latest = manifest
  }
  return latest
}

async function openIfSound(repository: Repository, name: ManifestName): Promise<Manifest | undefined> {
  try {
    return await openIfThere(repository, name)
  } catch (error) {
    if (error instanceof Damage) return undefined
    throw error
  }
}

/** Backup ids sort by the time of their request; backups of one server may be run in a slightly different order. */
const CANDIDATES = 4

/** Durable once it returns. The blocks are given back by a reclaim. */
export function deleteManifest(repository: Repository, { serverId, backupId }: ManifestName): Promise<void> {
  return repository.blobs.delete(manifestBlob(serverId, backupId))
}
