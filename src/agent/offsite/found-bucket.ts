// What a recovery has found out about the bucket is kept in the data directory: the service that is started after it restores
// from there at once, and does not try first what was done a moment ago.
import { createHash } from 'node:crypto'
import type { BucketSettings, FoundBucket } from '../../blobs/bucket.ts'
import { formatS3Place } from '../../contract/offsite-place.ts'
import { readRecord, writeRecord } from '../../kit/files/durable-record.ts'

const GOOD_MS = 3600_000

type Whose = Pick<BucketSettings, 'place' | 'keys'>

interface Kept extends FoundBucket {
  place: string
  keysDigest: string
}

/** The bucket was read, listed and written to with these keys. */
export function keepFound(path: string, { place, keys }: Whose, where: Omit<FoundBucket, 'goodUntil'>): void {
  const kept: Kept = {
    place: formatS3Place(place),
    keysDigest: digestOf(keys),
    ...where,
    goodUntil: Date.now() + GOOD_MS,
  }
  writeRecord(path, kept)
}

/** Undefined where nothing was found with just these settings; what is kept may be of another time, or of other keys. */
export function readFound(path: string, { place, keys }: Whose): FoundBucket | undefined {
  const kept = readRecord<Kept>(path)
  if (kept?.place !== formatS3Place(place) || kept.keysDigest !== digestOf(keys)) return undefined
  const { region, addressing, goodUntil } = kept
  // A clock that was set back must not make it good for longer.
  return { region, addressing, goodUntil: Math.min(goodUntil, Date.now() + GOOD_MS) }
}

/** It is compared, and tells nobody what they are. */
function digestOf({ accessKeyId, secretAccessKey, sessionToken }: Whose['keys']): string {
  return createHash('sha256')
    .update(JSON.stringify([accessKeyId, secretAccessKey, sessionToken]))
    .digest('hex')
}
