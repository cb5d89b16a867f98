// What the mirror has and the store does not, and whether it may go.
import type { BlobSum, OffsiteWork, SurplusReason } from '../../contract/agent/agent-offsite.ts'
import { forEachAtOnce } from '../../kit/waiting/work-group.ts'
import { packBlob } from '../backups/format/format.ts'
import type { Repository } from '../backups/store/repository.ts'
import { refusalIn } from './guarded-store.ts'
import { findLacking } from './lacking.ts'
import {
  BLOBS_AT_ONCE,
  backupOf,
  folderOf,
  holdingsOf,
  inFolder,
  type Listing,
  REMOVED_FOLDERS,
  sumOf,
  surplusOf,
} from './mirror-plan.ts'
import type { Mirror, MirrorRun } from './mirror-run.ts'
import { neededParts } from './needed-parts.ts'

export async function removeSurplus(
  place: Mirror,
  { listing, isLacking: isStoreLacking }: ListedStore,
  { deletedBackups, confirmedBytes }: OffsiteWork,
): Promise<Pick<MirrorRun, 'removed' | 'surplus' | 'unexplained' | 'refusal'>> {
  const { mirror, inventory, ownership, record, isAppendOnly } = place
  const removed: BlobSum = { blobs: 0, bytes: 0 }
  const before = holdingsOf(inventory)
  const groups = REMOVED_FOLDERS.map((folder) => surplusOf(folder, listing, inventory))
  const sum = sumOf(groups.flat())
  if (sum.blobs === 0) return { removed, surplus: null, unexplained: [], refusal: null }
  const manifests = surplusOf('manifests', listing, inventory)
  const unexplained = manifests.map(({ name }) => backupOf(name)).filter(isAnyBut(deletedBackups))
  const after = { bytes: before.bytes - sum.bytes, backups: before.backups - manifests.length }
  const needed = await partsToKeep(place, listing)
  const packs = (['index', 'packs'] as const).flatMap((folder) => surplusOf(folder, listing, inventory))
  const isConfirmed = confirmedBytes !== null && sum.bytes <= confirmedBytes
  const isIncomplete = listing.lost.length > 0 || needed.size > 0 || unexplained.length > 0
  // To look takes reading every manifest: only where some of them would go otherwise.
  const isLooked = packs.length > 0 && !isAppendOnly && (isConfirmed || !isIncomplete)
  const isLacking = isLooked && (await isStoreLacking())
  // What the disk has lost may be in any of them: not even a confirmation removes those.
  if (isLacking) for (const { name } of packs) needed.add(name)
  const reason = reasonAgainst({
    isAppendOnly,
    isConfirmed,
    isIncomplete: isIncomplete || isLacking,
    wouldShrink: record.wouldShrink(after),
  })
  const asked = reason === 'store_incomplete' ? unexplained : []
  if (reason)
    return { removed, surplus: { ...sum, backups: manifests.length, reason }, unexplained: asked, refusal: null }
  await ownership.require()
  await ownership.hold()
  const refusal = await unlessRefused(async () => {
    for (const blobs of groups) {
      const removable = blobs.filter(({ name }) => !needed.has(name))
      await forEachAtOnce(removable, BLOBS_AT_ONCE, async ({ name, sizeBytes }) => {
        await mirror.delete(name)
        inventory.delete(name)
        removed.blobs++
        removed.bytes += sizeBytes
      })
    }
  })
  if (refusal === null && isConfirmed) record.reset(holdingsOf(inventory))
  const left = groups.flat().filter(({ name }) => inventory.has(name))
  if (refusal === null && !isLacking) return { removed, surplus: null, unexplained: [], refusal }
  const backups = left.filter(({ name }) => folderOf(name) === 'manifests').length
  const why = refusal === null ? ('store_incomplete' as const) : ('append_only' as const)
  return { removed, surplus: { ...sumOf(left), backups, reason: why }, unexplained: [], refusal }
}

/** A key that may not remove still sends: what is there beyond the store does no harm. */
async function unlessRefused(remove: () => Promise<void>): Promise<string | null> {
  try {
    await remove()
    return null
  } catch (error) {
    const refusal = refusalIn(error)
    if (refusal === undefined) throw error
    return refusal
  }
}

/** Those that the disk has lost, and that manifests of the mirror name which stay there. Not even a confirmation removes them. */
function partsToKeep({ repository, local, mirror, inventory }: Mirror, listing: Listing): Promise<Set<string>> {
  const staying = inFolder(inventory, 'manifests').filter(({ name }) => listing.manifests.has(name))
  // A backup that was deleted since the store was listed is still in the mirror, and only there.
  const stores = [local, mirror].map((blobs) => ({ blobs, sealer: repository.sealer }))
  const names = staying.map(({ name }) => backupOf(name))
  return neededParts(surplusOf('parts', listing, inventory), names, stores)
}

function isAnyBut(backupIds: readonly string[]) {
  const known = new Set(backupIds)
  return ({ backupId }: { backupId: string }) => !known.has(backupId)
}

/** All of it goes or none: a manifest that stays needs its packs. */
function reasonAgainst(removal: {
  isAppendOnly: boolean
  isConfirmed: boolean
  isIncomplete: boolean
  wouldShrink: boolean
}): SurplusReason | null {
  if (removal.isAppendOnly) return 'append_only'
  if (removal.isConfirmed) return null
  if (removal.isIncomplete) return 'store_incomplete'
  return removal.wouldShrink ? 'shrinks' : null
}

export interface ListedStore {
  listing: Listing
  /**
   * Whether a backup of the store needs a pack that the store has neither on the disk nor, by its own decision, in the mirror
   * alone. Then it cannot tell what of the mirror is needed. Every manifest is read for that, once.
   */
  isLacking(): Promise<boolean>
}

export function listedStore(repository: Repository, listing: Listing, signal: AbortSignal): ListedStore {
  let found: Promise<boolean> | undefined
  const { packs } = repository
  const holds = (packId: string) => {
    const name = packBlob(packId)
    return listing.away.has(name) || (packs.has(packId) && listing.packs.get(name) === packs.get(packId))
  }
  async function look(): Promise<boolean> {
    using _shared = await repository.writing.share(signal)
    const manifests = [...listing.manifests.keys()].map(backupOf)
    return (await findLacking(repository, manifests, holds, signal)).length > 0
  }
  return {
    listing,
    isLacking() {
      found ??= look()
      return found
    },
  }
}
