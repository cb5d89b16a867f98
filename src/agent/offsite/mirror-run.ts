// Makes the mirror what the store is: packs, indexes, parts, manifests and locks are sent in this order, then what the store no
// longer has is removed in the reverse order. Cut short at any point, the mirror is a store in which every manifest has all
// that it needs, and the next run goes on.
import type { BlobStore } from '../../blobs/store.ts'
import type { BlobSum, MirrorReport, OffsiteWork, SurplusReason } from '../../contract/agent/agent-offsite.ts'
import type { TaskProgress } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import { createRateLimit } from '../../kit/rate-limit.ts'
import { forEachAtOnce } from '../../kit/work-group.ts'
import { allowParts } from '../backups/format/store-format.ts'
import type { Repository } from '../backups/store/repository.ts'
import { findIncomplete, isSomeNeeded, listStore } from './listing.ts'
import {
  type Blob,
  type Blobs,
  type Folder,
  inFolder,
  type Listing,
  missingOf,
  REMOVED_FOLDERS,
  SENT_FOLDERS,
  sumOf,
  surplusOf,
} from './mirror-plan.ts'
import type { MirrorRecord } from './mirror-record.ts'
import type { Ownership } from './ownership.ts'
import { sendBlob, type Wire } from './send-blob.ts'
import { isWorthReplacing } from './soundness.ts'

/** Blobs on their way at one time: what they hold in memory is bounded by this and by the size of a chunk. */
const AT_ONCE = 4

export interface Mirror {
  repository: Pick<Repository, 'writing' | 'packs' | 'doubtful' | 'sealer'>
  local: BlobStore
  /** Where it is. */
  mirror: BlobStore
  /** What it holds, kept up to date while nothing fails. */
  inventory: Blobs
  ownership: Ownership
  record: MirrorRecord
  bytesPerSecond: number | null
  isAppendOnly: boolean
}

export async function runMirror(
  mirror: Mirror,
  work: OffsiteWork,
  signal: AbortSignal,
  report: (progress: Partial<TaskProgress>) => void,
): Promise<MirrorReport> {
  const sent = createTally(report)
  const manifests: string[] = []
  let listing: Listing
  do {
    listing = await listStore(mirror.repository, mirror.local, signal)
  } while (!(await sendMissing(mirror, listing, sent, manifests, signal)))
  const removal = await removeSurplus(mirror, listing, work)
  // What is sent before as much is removed does not count: it would make half of what was there before.
  mirror.record.note(holdingsOf(mirror.inventory))
  const stored = (work.isThorough ? [...listing.manifests.keys()] : manifests).filter((name) =>
    mirror.inventory.has(name),
  )
  return {
    stored: stored.map(backupOf),
    isThorough: work.isThorough,
    sent: sent.sum(),
    mirror: { blobs: mirror.inventory.size, ...holdingsOf(mirror.inventory) },
    ...removal,
  }
}

function backupOf(manifest: string) {
  const [, serverId = '', backupId = ''] = manifest.split('/')
  return { serverId, backupId }
}

/** False where a reclaim has changed the store meanwhile: then it is listed again. */
async function sendMissing(
  mirror: Mirror,
  listing: Listing,
  sent: Tally,
  manifests: string[],
  signal: AbortSignal,
): Promise<boolean> {
  const { local, inventory } = mirror
  const rate = createRateLimit(mirror.bytesPerSecond)
  const wire: Wire = { local, mirror: mirror.mirror, rate, signal, onSent: sent.addBytes }
  const missing = new Map<Folder, Blob[]>()
  for (const folder of SENT_FOLDERS) missing.set(folder, await worthSending(mirror, folder, listing))
  sent.expect(sumOf([...missing.values()].flat()))
  if (missing.get('parts')?.length) await allowParts(mirror.mirror)
  for (const folder of SENT_FOLDERS) {
    const arrived: Blob[] = []
    let hasVanished = false
    await forEachAtOnce(missing.get(folder) ?? [], AT_ONCE, async (blob) => {
      const blobSent = await sendBlob(wire, blob, inventory.has(blob.name))
      if (blobSent) arrived.push(blobSent)
      else hasVanished = true
      sent.addBlob()
    })
    await confirm(mirror, folder, arrived)
    for (const { name, sizeBytes } of arrived) inventory.set(name, sizeBytes)
    if (folder === 'manifests') manifests.push(...arrived.map(({ name }) => name))
    // A backup may be deleted, and a lock changed, at any time, and nothing else depends on them.
    if (hasVanished && folder !== 'manifests' && folder !== 'locks') return false
  }
  return true
}

async function worthSending(mirror: Mirror, folder: Folder, listing: Listing): Promise<Blob[]> {
  const worth: Blob[] = []
  for (const blob of missingOf(folder, listing, mirror.inventory)) {
    const there = mirror.inventory.get(blob.name)
    if (there === undefined || (await isWorthReplacing(mirror, blob.name, there))) worth.push(blob)
  }
  return worth
}

/** An answer that all is well is not yet a blob: nothing relies on one before the mirror lists it in its full size. */
async function confirm({ mirror, inventory }: Mirror, folder: Folder, arrived: readonly Blob[]): Promise<void> {
  const inMirror = inFolder(inventory, folder).length + arrived.length
  const incomplete = await findIncomplete(mirror, folder, arrived, inMirror)
  if (incomplete.length === 0) return
  const count = `${incomplete.length} of ${arrived.length}`
  throw fail('offsite_unreachable', `The off-site store does not have ${count} blobs that it has acknowledged.`)
}

async function removeSurplus(
  { repository, local, mirror, inventory, ownership, record, isAppendOnly }: Mirror,
  listing: Listing,
  { deletedBackups, confirmedBytes }: OffsiteWork,
): Promise<Pick<MirrorReport, 'removed' | 'surplus' | 'unexplained'>> {
  const removed: BlobSum = { blobs: 0, bytes: 0 }
  const before = holdingsOf(inventory)
  const groups = REMOVED_FOLDERS.map((folder) => surplusOf(folder, listing, inventory))
  const sum = sumOf(groups.flat())
  if (sum.blobs === 0) return { removed, surplus: null, unexplained: [] }
  const manifests = surplusOf('manifests', listing, inventory)
  const unexplained = manifests.map(({ name }) => backupOf(name)).filter(isAnyBut(deletedBackups))
  const after = { bytes: before.bytes - sum.bytes, backups: before.backups - manifests.length }
  const parts = surplusOf('parts', listing, inventory)
  const hasLost = listing.lost.length > 0 || (await isSomeNeeded({ blobs: local, sealer: repository.sealer }, parts))
  const isConfirmed = confirmedBytes !== null && sum.bytes <= confirmedBytes
  const reason = reasonAgainst({
    isAppendOnly,
    isConfirmed,
    isIncomplete: hasLost || unexplained.length > 0,
    wouldShrink: record.wouldShrink(after),
  })
  const asked = reason === 'store_incomplete' ? unexplained : []
  if (reason) return { removed, surplus: { ...sum, backups: manifests.length, reason }, unexplained: asked }
  await ownership.require()
  for (const blobs of groups) {
    await forEachAtOnce(blobs, AT_ONCE, async ({ name, sizeBytes }) => {
      await mirror.delete(name)
      inventory.delete(name)
      removed.blobs++
      removed.bytes += sizeBytes
    })
  }
  if (isConfirmed) record.reset(after)
  return { removed, surplus: null, unexplained: [] }
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
