// Whose a place is, for people to read. Who may send to it is decided in ownership.ts.
import { BlobDamaged, BlobMissing, type BlobStore } from '../../blobs/store.ts'
import { readRecord } from '../../kit/files/durable-record.ts'

const OWNER_BLOB = 'owner'

export interface PlaceOwner {
  /** The name of its machine; null where the claim cannot be read. */
  host: string | null
  /** RFC 3339. */
  claimedAt: string | null
}

/** Null where the place is nobody's, or belongs to the data directory whose record of its mirror is at `mirrorRecord`. */
export async function readOtherOwner(place: Pick<BlobStore, 'get'>, mirrorRecord: string): Promise<PlaceOwner | null> {
  const found = await readClaim(place)
  const own = readRecord<{ claimId: string }>(mirrorRecord)?.claimId
  if (found === null || (own !== undefined && found.claimId === own)) return null
  const { host, claimedAt } = found
  return {
    host: typeof host === 'string' && host !== '' ? host : null,
    claimedAt: typeof claimedAt === 'string' && !Number.isNaN(Date.parse(claimedAt)) ? claimedAt : null,
  }
}

async function readClaim(place: Pick<BlobStore, 'get'>): Promise<Record<string, unknown> | null> {
  try {
    return Object(JSON.parse(Buffer.from(await place.get(OWNER_BLOB)).toString()))
  } catch (error) {
    if (error instanceof BlobMissing) return null
    // Somebody's, whoever it is.
    if (error instanceof SyntaxError || error instanceof BlobDamaged) return {}
    throw error
  }
}
