// Puts manifests, their parts and indexes in place again from the off-site copy, each checked before.
import { StoreUnreachable } from '../../../blobs/layered.ts'
import { BlobMissing, type BlobStore, isLost } from '../../../blobs/store.ts'
import { isFailure } from '../../../contract/errors.ts'
import { isDiskFull } from '../../../kit/files/errno.ts'
import { Damage, manifestBlob, PARTS_VERSION, PATCHES_VERSION, partBlob } from '../format/format.ts'
import { openManifest } from '../format/manifest.ts'
import { checkPart } from '../format/parts.ts'
import { raiseVersion } from '../format/store-format.ts'
import { readIndex } from './index-blobs.ts'
import type { ManifestName } from './manifests.ts'
import type { Repository } from './repository.ts'
import { inMemory } from './sound-blobs.ts'

/** What cannot be had from the copy, or has no room, stays as it is. */
export async function unlessOutOfReach(heal: () => Promise<boolean>): Promise<boolean> {
  try {
    return await heal()
  } catch (error) {
    const isOutOfReach = isLost(error) || error instanceof StoreUnreachable || error instanceof Damage
    if (isOutOfReach || isDiskFull(error)) return false
    throw error
  }
}

/** A backup's manifest that is damaged or gone, though nobody has deleted the backup. What it shares comes before it. */
export function healManifest(repository: Repository, name: ManifestName): Promise<boolean> {
  const { blobs, sealer, deleted } = repository
  const blob = manifestBlob(name.serverId, name.backupId)
  return healBlob(repository, blob, async (bytes, offsite) => {
    const memory = inMemory(bytes)
    const source = {
      stat: memory.stat,
      get: (...[of, range]: Parameters<BlobStore['get']>) => (of === blob ? memory : blobs).get(of, range),
    }
    const manifest = await openManifest(source, sealer, name)
    for (const { id } of manifest.parts) await healUnlessSound(repository, offsite, partBlob(name.serverId, id))
    for await (const _ of manifest.rawChunks());
    if (deleted.has(blob)) return false
    if (manifest.meta.version === PATCHES_VERSION) await raiseVersion(blobs, PATCHES_VERSION)
    await blobs.put(blob, bytes)
    if (!deleted.has(blob)) return true
    // It was deleted while it was put in place.
    await blobs.delete(blob)
    return false
  })
}

/** Where what the copy has of it is sound as a whole: other manifests may need what this one does not. */
export function healPart(repository: Repository, name: string): Promise<boolean> {
  return healBlob(repository, name, (bytes) => putPart(repository, name, bytes))
}

async function healUnlessSound(repository: Repository, offsite: BlobStore, name: string): Promise<void> {
  try {
    await checkPart(repository.blobs, repository.sealer, name)
  } catch (error) {
    if (!isLost(error) && !(error instanceof Damage)) throw error
    await putPart(repository, name, Buffer.from(await offsite.get(name)))
  }
}

async function putPart({ blobs, sealer }: Repository, name: string, bytes: Buffer): Promise<true> {
  await checkPart(inMemory(bytes), sealer, name)
  await raiseVersion(blobs, PARTS_VERSION)
  await blobs.put(name, bytes)
  return true
}

export function healIndex(repository: Repository, name: string): Promise<boolean> {
  return healBlob(repository, name, async (bytes) => {
    await readIndex(inMemory(bytes), repository.sealer, name)
    await repository.blobs.put(name, bytes)
    repository.damagedBlobs.delete(name)
    return true
  })
}

function healBlob(
  { offsite, healing }: Repository,
  name: string,
  heal: (bytes: Buffer, offsite: BlobStore) => Promise<boolean>,
): Promise<boolean> {
  return healing(() =>
    unlessOutOfReach(async () => offsite !== null && (await heal(Buffer.from(await offsite.get(name)), offsite))),
  )
}

/** Does it again once the manifest, or a part that it needs, is healed, where it fails because one is damaged or lost. */
export async function withManifest<T>(
  repository: Repository,
  name: ManifestName,
  work: () => Promise<T>,
  onHealed: (blob: string) => void = (blob) => repository.onHealed({ blob, serverId: name.serverId }),
): Promise<T> {
  const healed = new Set<string>()
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const blob = lostBlob(error, name)
      if (blob === undefined || healed.has(blob) || !(await healOne(repository, name, blob))) throw error
      healed.add(blob)
      onHealed(blob)
    }
  }
}

/** Of the manifest: itself, or one of its server's parts. */
function lostBlob(error: unknown, { serverId, backupId }: ManifestName): string | undefined {
  const manifest = manifestBlob(serverId, backupId)
  if (isFailure(error, 'not_found') && error.cause instanceof BlobMissing) return manifest
  const blob = error instanceof Damage ? error.blob : undefined
  return blob === manifest || blob?.startsWith(partBlob(serverId, '')) ? blob : undefined
}

function healOne(repository: Repository, name: ManifestName, blob: string): Promise<boolean> {
  return blob.startsWith('parts/') ? healPart(repository, blob) : healManifest(repository, name)
}
