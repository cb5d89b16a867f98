// Whose a place is, for people to read. Who may send to it is decided in ownership.ts.
import type { BlobStore } from '../../blobs/store.ts'
import { readRecord } from '../../kit/files/durable-record.ts'
import { readOwner } from './ownership.ts'

export interface PlaceOwner {
  /** The name of its machine; null where the claim cannot be read. */
  host: string | null
  /** RFC 3339. */
  claimedAt: string | null
}

/** Null where the place is nobody's, or belongs to the data directory whose record of its mirror is at `mirrorRecord`. */
export async function readOtherOwner(place: Pick<BlobStore, 'get'>, mirrorRecord: string): Promise<PlaceOwner | null> {
  const found = await readOwner(place)
  const own = readRecord<{ claimId: string }>(mirrorRecord)?.claimId
  if (!found || (own !== undefined && found.claimId === own)) return null
  const { host, claimedAt } = found
  return {
    host: typeof host === 'string' && host !== '' ? host : null,
    claimedAt: typeof claimedAt === 'string' && !Number.isNaN(Date.parse(claimedAt)) ? claimedAt : null,
  }
}
