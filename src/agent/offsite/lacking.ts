// Which backups need a pack that is not where it should be.
import { Damage } from '../backups/format/format.ts'
import { type ManifestName, openIfThere, unlessGone } from '../backups/store/manifests.ts'
import { createBlockCheck } from '../backups/store/missing-blocks.ts'
import type { Repository } from '../backups/store/repository.ts'

/** Those of the manifests with a block of which `holds` does not say that its pack is there. One that is gone lacks nothing. */
export async function findLacking(
  repository: Repository,
  manifests: readonly ManifestName[],
  holds: (packId: string) => boolean,
  signal: AbortSignal,
): Promise<ManifestName[]> {
  const { index } = repository
  const held = new Map<string, boolean>()
  const check = createBlockCheck((bytes, idAt) => {
    const block = index.findAny(bytes, idAt)
    if (block < 0) return 'in no pack'
    const { packId } = index.framePlace(index.frameOf(block))
    const isHeld = held.get(packId) ?? holds(packId)
    held.set(packId, isHeld)
    return isHeld ? undefined : 'in a pack that is not there'
  })

  async function lacks(name: ManifestName): Promise<boolean> {
    const manifest = await openIfThere(repository, name)
    return manifest !== undefined && (await check(manifest)) !== null
  }

  const lacking: ManifestName[] = []
  for (const name of manifests) {
    signal.throwIfAborted()
    try {
      if (await unlessGone(() => lacks(name))) lacking.push(name)
    } catch (error) {
      // What cannot be read might need anything.
      if (!(error instanceof Damage)) throw error
      lacking.push(name)
    }
  }
  return lacking
}
