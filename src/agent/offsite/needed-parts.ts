// Which parts have to stay in the mirror, though the store no longer has them: a disk may lose what nobody has deleted.
import { isLost } from '../../blobs/store.ts'
import { Damage } from '../backups/format/format.ts'
import { type ManifestName, type ManifestSource, openIfThere, partsOf } from '../backups/store/manifests.ts'
import type { Blob } from './mirror-plan.ts'

/**
 * Those of the parts that one of the manifests names. Each is read from the first of the stores that has it; one that cannot be
 * read in any might need all of its server.
 */
export async function neededParts(
  parts: readonly Blob[],
  manifests: readonly ManifestName[],
  stores: readonly ManifestSource[],
): Promise<Set<string>> {
  const needed = new Set<string>()
  const ofServer = Map.groupBy(
    parts.map(({ name }) => name),
    (name) => name.split('/')[1] ?? '',
  )
  for (const manifest of manifests) {
    const candidates = ofServer.get(manifest.serverId)
    if (!candidates) continue
    const named = await namedBy(manifest, stores)
    for (const name of candidates) if (!named || named.has(name)) needed.add(name)
  }
  return needed
}

/** Undefined where nobody can tell. */
async function namedBy(
  name: ManifestName,
  stores: readonly ManifestSource[],
): Promise<ReadonlySet<string> | undefined> {
  let isDamaged = false
  for (const store of stores) {
    try {
      const manifest = await openIfThere(store, name)
      if (manifest) return new Set(partsOf(manifest))
    } catch (error) {
      if (!(error instanceof Damage) && !isLost(error)) throw error
      isDamaged = true
    }
  }
  return isDamaged ? undefined : new Set()
}
