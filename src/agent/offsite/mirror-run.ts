// Makes the mirror what the store is: packs, indexes, parts, manifests and locks are sent in this order, then what the store no
// longer has is removed in the reverse order. Cut short at any point, the mirror is a store in which every manifest has all
// that it needs, and the next run goes on.
import type { BlobStore } from '../../blobs/store.ts'
import type { BlobSum, MirrorReport, OffsiteWork } from '../../contract/agent/agent-offsite.ts'
import type { TaskProgress } from '../../contract/agent.ts'
import { createRateLimit } from '../../kit/waiting/rate-limit.ts'
import { forEachAtOnce } from '../../kit/waiting/work-group.ts'
import { lastSegment, packBlob } from '../backups/format/format.ts'
import type { Repository } from '../backups/store/repository.ts'
import { type Bundles, bundleSmall } from './bundles.ts'
import { findLacking } from './lacking.ts'
import { confirmArrived, listStore } from './listing.ts'
import {
  BLOBS_AT_ONCE,
  type Blob,
  type Blobs,
  backupOf,
  type Folder,
  holdingsOf,
  type Listing,
  missingOf,
  SENT_FOLDERS,
  sumOf,
  surplusOf,
} from './mirror-plan.ts'
import type { MirrorRecord } from './mirror-record.ts'
import { type Ownership, ownVersion, sendVersion } from './ownership.ts'
import { regainIndexes } from './regain.ts'
import { repairMirror } from './repair.ts'
import { type Replacement, replaceBlob } from './replace-blob.ts'
import { sendBlob, type Wire } from './send-blob.ts'
import { isSoundHere } from './sound-pack.ts'
import { type ListedStore, listedStore, removeSurplus } from './surplus.ts'

export interface Mirror {
  repository: Repository
  local: BlobStore
  /** Where it is. */
  mirror: BlobStore
  /** What it holds, kept up to date while nothing fails. */
  inventory: Blobs
  /** What its format was found, or made, to say; good for as long as the inventory. */
  format: { version: number }
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
  const { repository, inventory, record } = mirror
  // Also where nobody has noted it for a week, or for another name of the same place.
  record.note(holdingsOf(inventory))
  let store: ListedStore
  do {
    store = await listWhole(mirror, work, signal)
  } while (!(await sendMissing(mirror, wire, store.listing, tally, sent)))
  const { listing } = store
  const repair = await repairMirror({ repository, wire, inventory, listing, sent })
  const removal = await removeSurplus(mirror, store, work)
  await bundleSmall({ ...mirror, isAppendOnly: mirror.isAppendOnly || removal.refusal !== null }, wire, sent)
  // What is sent before as much is removed does not count: it would make half of what was there before.
  record.note(holdingsOf(inventory))
  const { stored, lacking } = await findStored(mirror, listing, { isThorough: work.isThorough, sent }, signal)
  return {
    stored,
    lacking,
    isThorough: work.isThorough,
    sent: tally.sum(),
    mirror: { blobs: inventory.size, ...holdingsOf(inventory) },
    ...repair,
    ...removal,
  }
}

/** The store, once it has the indexes again that it has lost and the mirror has. A thorough run looks for them, as each start has one. */
async function listWhole(
  { repository, local, mirror, inventory }: Mirror,
  { isThorough }: OffsiteWork,
  signal: AbortSignal,
): Promise<ListedStore> {
  const list = async () => listedStore(repository, await listStore(repository, local, signal), signal)
  const store = await list()
  const indexes = isThorough ? surplusOf('index', store.listing, inventory) : []
  if (indexes.length === 0 || !(await store.isLacking())) return store
  return (await regainIndexes(repository, mirror, indexes, signal)) ? await list() : store
}

/** Of those that the report tells of: which have all that they need in the mirror, and which lack something. */
async function findStored(
  { repository, inventory }: Mirror,
  listing: Listing,
  { isThorough, sent }: { isThorough: boolean; sent: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<Pick<MirrorReport, 'stored' | 'lacking'>> {
  const told = [...listing.manifests.keys()].filter((name) => isThorough || sent.has(name))
  const unsent = [...listing.manifests.keys()].filter((name) => !inventory.has(name))
  // What was sent just now was looked at before; of the rest nothing can be missing while every pack is there.
  const isSuspect = isThorough && !isMirrorWhole(repository, listing, inventory)
  const suspects = new Set([...unsent, ...(isSuspect ? told : [])])
  const lacking = await findLacking(repository, [...suspects].map(backupOf), holdsPack(repository, inventory), signal)
  const isLacking = new Set(lacking.map(({ backupId }) => backupId))
  const stored = told.filter((name) => inventory.has(name)).map(backupOf)
  return { stored: stored.filter(({ backupId }) => !isLacking.has(backupId)), lacking }
}

/** Every pack that the store knows is in the mirror, and nothing is there that the store does not know. */
function isMirrorWhole(repository: Repository, listing: Listing, inventory: Blobs): boolean {
  const holds = holdsPack(repository, inventory)
  const isKnown = surplusOf('index', listing, inventory).length + surplusOf('packs', listing, inventory).length === 0
  return isKnown && listing.lost.length === 0 && [...repository.packs.keys()].every(holds)
}

/** In its full size. */
const holdsPack =
  ({ packs }: Repository, inventory: Blobs) =>
  (packId: string) =>
    packs.has(packId) && inventory.get(packBlob(packId)) === packs.get(packId)

/** False where a reclaim has changed the store meanwhile: then it is listed again. */
async function sendMissing(
  { repository, local, mirror, inventory, format, ownership }: Mirror,
  wire: Wire,
  listing: Listing,
  tally: Tally,
  sent: Set<string>,
): Promise<boolean> {
  const missing = new Map(SENT_FOLDERS.map((folder) => [folder, missingOf(folder, listing, inventory)]))
  const all = sumOf([...missing.values()].flat())
  tally.expect(all)
  if (all.blobs > 0) await ownership.hold()
  if (missing.get('parts')?.length || missing.get('manifests')?.length) {
    // Read now: it was raised before what is listed was there.
    const version = await ownVersion(local)
    if (version > format.version) await sendVersion(mirror, local, version)
    format.version = Math.max(format.version, version)
  }
  for (const [folder, listed] of missing) {
    const blobs = await sendable(folder, listed, repository, inventory, wire.signal)
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
    await forEachAtOnce(others, BLOBS_AT_ONCE, async (blob) => {
      const isSound = folder !== 'packs' || (await isSoundHere(repository, blob.name, wire.signal))
      note(isSound ? await sendBlob(wire, blob, inventory.has(blob.name)) : 'unsound')
    })
    for (const { name } of blobs.filter(isAltered)) note(await replaceBlob(wire, repository, name))
    await confirmArrived(mirror, inventory, folder, arrived)
    for (const { name } of arrived) sent.add(name)
    // A backup may be deleted, and a lock changed, at any time, and nothing else depends on them.
    if (hasVanished && folder !== 'manifests' && folder !== 'locks') return false
  }
  return true
}

/** Without packs that are shorter than they were, and manifests that need a pack which is not there. */
async function sendable(
  folder: Folder,
  blobs: Blob[],
  repository: Repository,
  inventory: Blobs,
  signal: AbortSignal,
): Promise<Blob[]> {
  const { packs } = repository
  if (folder === 'packs')
    return blobs.filter(({ name, sizeBytes }) => sizeBytes === (packs.get(lastSegment(name)) ?? sizeBytes))
  if (folder !== 'manifests') return blobs
  const names = blobs.map(({ name }) => backupOf(name))
  const lacking = await findLacking(repository, names, holdsPack(repository, inventory), signal)
  const isLacking = new Set(lacking.map(({ backupId }) => backupId))
  return blobs.filter(({ name }) => !isLacking.has(backupOf(name).backupId))
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
