// The manifests of a store as a whole.
import type { BlobStore } from '../../../blobs/store.ts'
import type { StoredBackup } from '../../../contract/agent/agent-backups.ts'
import { isFailure } from '../../../contract/errors.ts'
import { forEachAtOnce } from '../../../kit/waiting/work-group.ts'
import { Damage, lastSegment, manifestBlob, partBlob } from '../format/format.ts'
import { type HeldManifest, holdManifest, type Manifest, openManifest } from '../format/manifest.ts'
import { readMarks } from './lock-marks.ts'
import { createBlockCheck, type FindFault } from './missing-blocks.ts'
import type { Repository } from './repository.ts'

/** What reading manifests needs of a store. */
export type ManifestSource = { blobs: BlobStore } & Pick<Repository, 'sealer'>

export interface ManifestName {
  serverId: string
  backupId: string
}

export async function manifestNames(
  repository: Pick<ManifestSource, 'blobs'>,
  serverId?: string,
): Promise<ManifestName[]> {
  const names: ManifestName[] = []
  for await (const { name } of repository.blobs.list(
    serverId === undefined ? 'manifests/' : `manifests/${serverId}/`,
  )) {
    const [, owner] = name.split('/')
    if (owner !== undefined) names.push({ serverId: owner, backupId: lastSegment(name) })
  }
  return names
}

/** Of the blobs that manifests share. */
export async function partNames({ blobs }: Pick<ManifestSource, 'blobs'>): Promise<string[]> {
  return (await Array.fromAsync(blobs.list('parts/'))).map(({ name }) => name)
}

/** The names of those that it needs. */
export const partsOf = ({ meta, parts }: Manifest) => parts.map(({ id }) => partBlob(meta.serverId, id))

/** Undefined where it is gone: backups are deleted at any time, whoever reads the store. */
export function openIfThere({ blobs, sealer }: ManifestSource, name: ManifestName): Promise<Manifest | undefined> {
  return unlessGone(() => openManifest(blobs, sealer, name))
}

/** Undefined where the backup is deleted before or while it is read. */
export async function unlessGone<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isFailure(error, 'not_found')) return undefined
    throw error
  }
}

/**
 * With the locks as they are now. By default only what a manifest says of itself is read; with `findFault` every entry is, and
 * checked, and the store is asked for the blocks that it names.
 */
export async function listManifests(
  repository: ManifestSource,
  {
    serverId,
    findFault,
    atOnce = 1,
  }: { serverId?: string | undefined; findFault?: FindFault | undefined; atOnce?: number } = {},
): Promise<StoredBackup[]> {
  const listed: StoredBackup[] = []
  const names = await manifestNames(repository, serverId)
  const marks = await readMarks(repository.blobs, serverId)
  const missingBlocks = findFault && createBlockCheck(findFault)
  await forEachAtOnce(names, atOnce, async (name) => {
    let backup: StoredBackup['backup'] = null
    try {
      const manifest = await openIfThere(repository, name)
      if (!manifest) return
      const isLocked = marks.get(name.backupId) ?? manifest.meta.isLocked
      backup = { ...manifest.meta, checksum: manifest.checksum, isLocked }
      const missing = (await missingBlocks?.(manifest)) ?? null
      listed.push({ ...name, backup, damage: missing, ...(missing === null ? {} : { areBlocksMissing: true }) })
    } catch (error) {
      if (isFailure(error, 'not_found')) return
      if (!(error instanceof Damage)) throw error
      listed.push({ ...name, backup, damage: error.message })
    }
  })
  return listed
}

/** The one to compare a tree with. A damaged one only makes the next backup slower. */
export async function latestManifest(repository: Repository, serverId: string): Promise<HeldManifest | undefined> {
  const hold = (name: ManifestName) => ifSound(() => holdManifest(repository.blobs, repository.sealer, name))
  const known = repository.latest.get(serverId)
  const manifest = known && (await hold({ serverId, ...known }))
  if (manifest) return manifest
  const newest = await newestManifest(repository, serverId)
  return newest && (await hold(newest))
}

async function newestManifest(repository: Repository, serverId: string): Promise<ManifestName | undefined> {
  let latest: Manifest | undefined
  const names = (await manifestNames(repository, serverId)).sort((a, b) => (a.backupId < b.backupId ? 1 : -1))
  for (const name of names.slice(0, CANDIDATES)) {
    const manifest = await ifSound(() => openManifest(repository.blobs, repository.sealer, name))
    if (manifest && (!latest || manifest.meta.startedAt > latest.meta.startedAt)) latest = manifest
  }
  return latest?.meta
}

async function ifSound<T>(open: () => Promise<T>): Promise<T | undefined> {
  try {
    return await unlessGone(open)
  } catch (error) {
    if (error instanceof Damage) return undefined
    throw error
  }
}

/** Backup ids sort by the time of their request; backups of one server may be run in a slightly different order. */
const CANDIDATES = 4

/** Durable once it returns. The blocks are given back by a reclaim. */
export function deleteManifest(repository: Repository, { serverId, backupId }: ManifestName): Promise<void> {
  // Before it is gone: nobody takes it for lost.
  repository.deleted.add(manifestBlob(serverId, backupId))
  return repository.blobs.delete(manifestBlob(serverId, backupId))
}
