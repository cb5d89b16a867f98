// The mirror has a blob in another size than the store: one of the two is not as it was written. What the mirror has is
// replaced only by what is known to be sound, since the store may be what was damaged, by a disk or by an attacker.
import { BlobMissing, type BlobStore } from '../../blobs/store.ts'
import { isFailure } from '../../contract/errors.ts'
import { Damage, lastSegment } from '../backups/format/format.ts'
import { openManifest } from '../backups/format/manifest.ts'
import { checkPart } from '../backups/format/parts.ts'
import { readIndex } from '../backups/store/index-blobs.ts'
import { readPackTable } from '../backups/store/packs.ts'
import type { Repository } from '../backups/store/repository.ts'

export interface SoundnessDeps {
  repository: Pick<Repository, 'packs' | 'sealer'>
  local: BlobStore
}

export async function isWorthReplacing(
  { repository, local }: SoundnessDeps,
  name: string,
  sizeInMirror: number,
): Promise<boolean> {
  const { packs, sealer } = repository
  const [folder = '', ...path] = name.split('/')
  // Marks change, and have nothing to check.
  if (folder === 'locks') return true
  if (folder === 'packs') {
    const sizeBytes = packs.get(lastSegment(name))
    if (sizeBytes !== undefined) return sizeBytes !== sizeInMirror
    return await isSound(() => readPackTable(local, lastSegment(name)))
  }
  if (folder === 'index') return await isSound(() => readIndex(local, sealer, name))
  if (folder === 'parts') return await isSound(() => checkPart(local, sealer, name))
  const [serverId = '', backupId = ''] = path
  return await isSound(async () => {
    const manifest = await openManifest(local, sealer, { serverId, backupId })
    for await (const _ of manifest.rawChunks());
  })
}

async function isSound(read: () => Promise<unknown>): Promise<boolean> {
  try {
    await read()
    return true
  } catch (error) {
    // One that was deleted meanwhile is met when it would be sent.
    if (error instanceof Damage) return false
    if (error instanceof BlobMissing || isFailure(error, 'not_found')) return true
    throw error
  }
}
