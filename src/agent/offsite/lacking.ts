// Which backups need a pack that is not where it should be. A manifest says which blocks a backup has, the index in which packs
// they are; what neither lists cannot be had.
import { createTurns } from '../../kit/waiting/turns.ts'
import { visitIds } from '../backups/format/entries.ts'
import { Damage } from '../backups/format/format.ts'
import { type ManifestName, openIfThere, unlessGone } from '../backups/store/manifests.ts'
import type { Repository } from '../backups/store/repository.ts'

/** Those of the manifests with a block of which `holds` does not say that its pack is there. One that is gone lacks nothing. */
export async function findLacking(
  repository: Repository,
  manifests: readonly ManifestName[],
  holds: (packId: string) => boolean,
  signal: AbortSignal,
): Promise<ManifestName[]> {
  const { index } = repository
  const turn = createTurns('the mirror', signal)
  const held = new Map<string, boolean>()
  /** What many share is looked at once, unless it lacks something. */
  const seen = new Set<string>()

  function isHeld(packId: string): boolean {
    const known = held.get(packId) ?? holds(packId)
    held.set(packId, known)
    return known
  }

  function isWhole(chunk: Buffer): boolean {
    let lacks = 0
    visitIds(chunk, (idAt) => {
      const block = index.findAny(chunk, idAt)
      if (block < 0 || !isHeld(index.framePlace(index.frameOf(block)).packId)) lacks++
    })
    return lacks === 0
  }

  async function lacks(name: ManifestName): Promise<boolean> {
    const manifest = await openIfThere(repository, name)
    for await (const { raw } of manifest?.rawChunks(seen) ?? []) {
      if (!isWhole(raw)) return true
      if (turn.due()) await turn.take()
    }
    return false
  }

  const lacking: ManifestName[] = []
  for (const name of manifests) {
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
