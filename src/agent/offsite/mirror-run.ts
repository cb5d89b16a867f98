// Makes the mirror what the store is: packs, indexes, parts, manifests and locks are sent in this order, then what the store no
// longer has is removed in the reverse order. Cut short at any point, the mirror is a store in which every manifest has all
// that it needs, and the next run goes on.
import type { BlobStore } from '../../blobs/store.ts'
import type { BlobSum, MirrorReport, OffsiteWork, SurplusReason } from '../../contract/agent/agent-offsite.ts'
import type { TaskProgress } from '../../contract/agent.ts'
import { createRateLimit } from '../../kit/waiting/rate-limit.ts'
import { forEachAtOnce } from '../../kit/waiting/work-group.ts'
import type { Repository } from '../backups/store/repository.ts'
import { type Bundles, bundleSmall } from './bundles.ts'
import { refusalIn } from './guarded-store.ts'
import { confirmArrived, listStore } from './listing.ts'
import {
  type Blob,
  type Blobs,
  folderOf,
  inFolder,
  type Listing,
  missingOf,
  REMOVED_FOLDERS,
  SENT_FOLDERS,
  sumOf,
  surplusOf,
} from './mirror-plan.ts'
import type { MirrorRecord } from './mirror-record.ts'
import { neededParts } from './needed-parts.ts'
import { type Ownership, sendPartsVersion } from './ownership.ts'
import { repairMirror } from './repair.ts'
import { type Replacement, replaceBlob } from './replace-blob.ts'
import { sendBlob, type Wire } from './send-blob.ts'

/** Blobs on their way at one time: what they hold in memory is bounded by this and by the size of a chunk. */
const AT_ONCE = 4

export interface Mirror {
  repository: Repository
  local: BlobStore
  /** Where it is. */
  mirror: BlobStore
  /** What it holds, kept up to date while nothing fails. */
  inventory: Blobs
  /** Whether it was found, or made, to say that it may have parts; good for as long as the inventory. */
  parts: { areAllowed: boolean }
  bundles: Bundles
  ownership: Ownership
  record: MirrorRecord
  bytesPerSecond: number | null
  isAppendOnly: boolean
}

export interface MirrorRun extends Omit<MirrorReport, 'warnings'> {
  /** Why the key may not remove what should go, in a sentence; null where it may, or nothing had to go. */
  refusal: string | null
}

export async function runMirror(
  mirror: Mirror,
  work: OffsiteWork,
  signal: AbortSignal,
  report: (progress: Partial<TaskProgress>) => void,
): Promise<MirrorRun> {
  const tally = createTally(report)
  const rate = createRateLimit(mirror.bytesPerSecond)
  const wire: Wire = { local: mirror.local, mirror: mirror.mirror, rate, signal, onSent: tally.addBytes }
  const sent = new Set<string>()
  let listing: Listing
  do {
    listing = await listStore(mirror.repository, mirror.local, signal)
  } while (!(await sendMissing(mirror, wire, listing, tally, sent)))
  const { repository, inventory } = mirror
  const repair = await repairMirror({ repository, wire, inventory, listing, sent })
  const removal = await removeSurplus(mirror, listing, work)
  await bundleSmall({ ...mirror, isAppendOnly: mirror.isAppendOnly || removal.refusal !== null }, wire, sent)
  // What is sent before as much is removed does not count: it would make half of what was there before.
  mirror.record.note(holdingsOf(inventory))
  const manifests = [...listing.manifests.keys()].filter((name) => work.isThorough || sent.has(name))
  const stored = manifests.filter((name) => inventory.has(name))
  return {
    stored: stored.map(backupOf),
    isThorough: work.isThorough,
    sent: tally.sum(),
    mirror: { blobs: inventory.size, ...holdingsOf(inventory) },
    ...repair,
    ...removal,
  }
}

function backupOf(manifest: string) {
  const [, serverId = '', backupId = ''] = manifest.split('/')
  return { serverId, backupId }
}

/** False where a reclaim has changed the store meanwhile: then it is listed again. */
async function sendMissing(
  { repository, local, mirror, inventory, parts }: Mirror,
  wire: Wire,
  listing: Listing,
  tally: Tally,
  sent: Set<string>,
): Promise<boolean> {
  const missing = new Map(SENT_FOLDERS.map((folder) => [folder, missingOf(folder, listing, inventory)]))
  tally.expect(sumOf([...missing.values()].flat()))
  if (missing.get('parts')?.length && !parts.areAllowed) {
    await sendPartsVersion(mirror, local)
    parts.areAllowed = true
  }
  for (const [folder, blobs] of missing) {
    const arrived: Blob[] = []
    let hasVanished = false
    const note = (outcome: Replacement | undefined) => {
      if (outcome === undefined || outcome === 'gone') hasVanished = true
      else if (outcome !== 'unsound') arrived.push(outcome)
      tally.addBlob()
    }
    // Marks change, and have nothing to check.
    const isAltered = ({ name }: Blob) => folder !== 'locks' && inventory.has(name)
    const others = blobs.filter((blob) => !isAltered(blob))
    await forEachAtOnce(others, AT_ONCE, async (blob) => note(await sendBlob(wire, blob, inventory.has(blob.name))))
    for (const { name } of blobs.filter(isAltered)) note(await replaceBlob(wire, repository, name))
    await confirmArrived(mirror, inventory, folder, arrived)
    for (const { name } of arrived) sent.add(name)
    // A backup may be deleted, and a lock changed, at any time, and nothing else depends on them.
    if (hasVanished && folder !== 'manifests' && folder !== 'locks') return false
  }
  return true
}

async function removeSurplus(
  place: Mirror,
  listing: Listing,
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
  const isConfirmed = confirmedBytes !== null && sum.bytes <= confirmedBytes
  const reason = reasonAgainst({
    isAppendOnly,
    isConfirmed,
    isIncomplete: listing.lost.length > 0 || needed.size > 0 || unexplained.length > 0,
    wouldShrink: record.wouldShrink(after),
  })
  const asked = reason === 'store_incomplete' ? unexplained : []
  if (reason)
    return { removed, surplus: { ...sum, backups: manifests.length, reason }, unexplained: asked, refusal: null }
  await ownership.require()
  const removeAll = async () => {
    for (const blobs of groups) {
      const removable = blobs.filter(({ name }) => !needed.has(name))
      await forEachAtOnce(removable, AT_ONCE, async ({ name, sizeBytes }) => {
        await mirror.delete(name)
        inventory.delete(name)
        removed.blobs++
        removed.bytes += sizeBytes
      })
    }
  }
  const refusal = await unlessRefused(removeAll)
  if (refusal === null) {
    if (isConfirmed) record.reset(holdingsOf(inventory))
    return { removed, surplus: null, unexplained: [], refusal }
  }
  const left = groups.flat().filter(({ name }) => inventory.has(name))
  const backups = left.filter(({ name }) => folderOf(name) === 'manifests').length
  return { removed, surplus: { ...sumOf(left), backups, reason: 'append_only' }, unexplained: [], refusal }
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

function holdingsOf(inventory: Blobs): { bytes: number; backups: number } {
  let bytes = 0
  for (const sizeBytes of inventory.values()) bytes += sizeBytes
  return { bytes, backups: inFolder(inventory, 'manifests').length }
}

type Tally = ReturnType<typeof createTally>

/** What was sent and what is still to be, also where the store is listed again in between. */
function createTally(report: (progress: Partial<TaskProgress>) => void) {
  const done: BlobSum = { blobs: 0, bytes: 0 }
  const tell = () => report({ filesDone: done.blobs, bytesDone: done.bytes })
  return {
    expect: ({ blobs, bytes }: BlobSum) => report({ filesTotal: done.blobs + blobs, bytesTotal: done.bytes + bytes }),
    addBytes(bytes: number) {
      done.bytes += bytes
      tell()
    },
    addBlob() {
      done.blobs++
      tell()
    },
    sum: (): BlobSum => ({ ...done }),
  }
}
