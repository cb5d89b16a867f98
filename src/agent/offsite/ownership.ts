// One service for each place: a blob there says whose it is. Two services that were pointed at one place by mistake would
// each remove what the other has sent.
import { hostname } from 'node:os'
import { BlobDamaged, BlobExists, BlobMissing, type BlobStore } from '../../blobs/store.ts'
import { fail } from '../../contract/errors.ts'
import { FORMAT_BLOB } from '../backups/format/format.ts'
import { raiseVersion, readStoreFormat, type StoreFormat } from '../backups/format/store-format.ts'
import type { MirrorRecord } from './mirror-record.ts'

const OWNER_BLOB = 'owner'

export interface Owner {
  storeId: string
  claimId: string
  claimedAt: string
  host: string
  /** Of the process that has used it last. */
  session: string
}

export interface Ownership {
  /** Claims a place that nobody has. Fails with `offsite_taken` where somebody else does. */
  require(): Promise<void>
  /** The same, before something is sent or removed: from then on whoever has a copy of the data directory is refused. */
  hold(): Promise<void>
  /** Whoever had it. */
  take(): Promise<void>
}

export interface OwnershipDeps {
  mirror: BlobStore
  local: BlobStore
  record: MirrorRecord
  /** Another one for each process. */
  session: string
  now: () => number
}

export function createOwnership({ mirror, local, record, session, now }: OwnershipDeps): Ownership {
  const { claimId, isNewClaim } = record
  const isOwn = (owner: Owner) => owner.claimId === claimId && owner.session === session

  async function write(format: StoreFormat, isReplacing: boolean): Promise<void> {
    const owner: Owner = {
      storeId: format.storeId,
      claimId,
      claimedAt: new Date(now()).toISOString(),
      host: hostname(),
      session,
    }
    record.beginSession(session)
    const bytes = Buffer.from(`${JSON.stringify(owner)}\n`)
    if (isReplacing) await mirror.put(OWNER_BLOB, bytes)
    else await createBlob(mirror, OWNER_BLOB, bytes)
    // Where both of two who write at once succeed, the later has it, and the earlier finds out before it next removes anything.
    const found = await readOwner(mirror)
    if (!found || isUnreadable(found)) throw notKept()
    if (!isOwn(found)) throw taken(found)
    record.keepSession()
  }

  /** Whether this process's own claim is there, as of the last look. */
  let isHeld = false

  async function look(): Promise<void> {
    isHeld = false
    const owner = await readOwner(mirror)
    if (owner?.claimId === claimId) {
      if (!isOwn(owner) && !record.isKnownSession(owner.session)) throw takenByCopy(owner)
      isHeld = isOwn(owner)
      return
    }
    if (owner && !isUnreadable(owner)) throw taken(owner)
    const format = await ownFormat(local)
    const there = await formatOf(mirror)
    // Before the format nothing is sent: a claim that was not kept whole is nobody's then, or ours, if we have begun one.
    if (owner && there && !record.isClaiming()) throw taken(owner)
    if (!owner && there && there.storeId !== format.storeId) throw otherStore()
    await write(format, owner !== undefined)
    isHeld = true
  }

  return {
    require: look,
    async hold() {
      if (!isHeld) await look()
      if (!isHeld) await write(await ownFormat(local), true)
      isHeld = true
    },
    async take() {
      const format = await ownFormat(local)
      requireAlike(format, await formatOf(mirror))
      const owner = isNewClaim ? undefined : await readOwner(mirror)
      if (!owner || !isOwn(owner)) await write(format, true)
    },
  }
}

/** Blocks that are named or sealed in another way are no use to this store, nor to a restore from the mirror. */
function requireAlike(here: StoreFormat, there: StoreFormat | undefined): void {
  if (there && (there.blockHash !== here.blockHash || there.keyCheck !== here.keyCheck)) throw otherStore()
}

/** Where the store never replaces a blob in this way, only one of two who come at once succeeds. */
async function createBlob(mirror: BlobStore, name: string, bytes: Uint8Array): Promise<void> {
  const writer = await mirror.create(name)
  try {
    await writer.write(bytes)
    await writer.commit()
  } catch (error) {
    await writer.abort()
    // Whose it is, is read next.
    if (!(error instanceof BlobExists)) throw error
  }
}

/**
 * Said before anything else: a store that does not say how it is made is none. The place is ours: what is there is replaced
 * only where it was not kept whole. The version that it has then. Fails with `offsite_taken` where the store here was made
 * anew, in another way, since the place was claimed.
 */
export async function sendFormat(mirror: BlobStore, local: BlobStore): Promise<number> {
  const formatThere = () => readStoreFormat(mirror).catch(ifDamaged)
  const there = await formatThere()
  requireAlike(await ownFormat(local), there)
  if (there) return there.version
  await mirror.put(FORMAT_BLOB, await local.get(FORMAT_BLOB))
  const kept = await formatThere()
  if (!kept) throw notKept()
  return kept.version
}

/** Said before anything is sent that needs it: nothing else of a format that is whole ever changes. */
export async function sendVersion(mirror: BlobStore, local: BlobStore, version: number): Promise<void> {
  if ((await sendFormat(mirror, local)) >= version) return
  await raiseVersion(mirror, version)
  // Where it was not kept whole it is sent once more at once: without it nobody reads what the mirror has already.
  if ((await sendFormat(mirror, local)) < version) throw notKept()
}

/** Of the store here. */
export const ownVersion = async (local: BlobStore) => (await ownFormat(local)).version

function ifDamaged(error: unknown): undefined {
  if (!isDamage(error)) throw error
}

/** What is there is not what somebody wrote. */
const isDamage = (error: unknown) => error instanceof SyntaxError || error instanceof BlobDamaged

async function ownFormat(local: BlobStore): Promise<StoreFormat> {
  const format = await readStoreFormat(local)
  if (!format) throw new Error('the store of backups has no format')
  return format
}

async function formatOf(mirror: BlobStore): Promise<StoreFormat | undefined> {
  try {
    return await readStoreFormat(mirror)
  } catch (error) {
    if (isDamage(error)) throw otherStore(error)
    throw error
  }
}

/** Undefined where it is nobody's. */
export async function readOwner(mirror: Pick<BlobStore, 'get'>): Promise<Owner | undefined> {
  try {
    const text = Buffer.from(await mirror.get(OWNER_BLOB)).toString()
    const { storeId = '', claimId = '', claimedAt = '', host = '', session = '' } = Object(JSON.parse(text))
    return { storeId, claimId, claimedAt, host, session }
  } catch (error) {
    if (error instanceof BlobMissing) return undefined
    if (isDamage(error)) return UNREADABLE
    throw error
  }
}

/** Somebody's, whoever it is. */
const UNREADABLE: Owner = { storeId: '', claimId: '', claimedAt: '', host: '', session: '' }
const isUnreadable = ({ claimId }: Owner) => claimId === ''

const REMEDY =
  'If that service is gone for good, take its place over with "gamekeeper offsite claim"; otherwise choose another prefix.'

const whereOf = ({ host, claimedAt }: Owner) => (host ? ` on ${host}, since ${claimedAt}` : '')

function taken(owner: Owner) {
  return fail('offsite_taken', `The prefix belongs to another service${whereOf(owner)}. ${REMEDY}`)
}

/** The data directory was copied, or is an older state of itself. */
function takenByCopy(owner: Owner) {
  const detail = `The prefix is used by a copy of this service${whereOf(owner)}, or was by a newer state of it. ${REMEDY}`
  return fail('offsite_taken', detail)
}

const notKept = () => fail('offsite_unreachable', 'The off-site store does not have what it has acknowledged.')

function otherStore(cause?: unknown) {
  const detail =
    'The prefix holds the backups of another store. Recover them with "gamekeeper backup recover", or choose another prefix.'
  return fail('offsite_taken', detail, cause)
}
