// A bucket as the place of the mirror. What its provider can do is found out once, by trying it.
import { openBlobStore } from '../../blobs/open-store.ts'
import type { S3Address } from '../../blobs/s3/address.ts'
import { S3Fault } from '../../blobs/s3/faults.ts'
import { formatS3Place, type S3Keys, type S3Place } from '../../contract/offsite-place.ts'
import type { MirrorTarget } from './index.ts'

/** What is wrong with the bucket, the key or the way there, in a sentence. */
class Unusable extends Error {}

export function s3Target({
  place,
  keys,
  bytesPerSecond,
  isAppendOnly,
}: {
  place: S3Place
  keys: S3Keys
  bytesPerSecond: number | null
  isAppendOnly: boolean
}): MirrorTarget {
  let address: S3Address | undefined

  async function findAddress(): Promise<S3Address> {
    // Only now: a service does not wait for the client of S3 to be read from disk.
    const { examine } = await import('../../blobs/s3/examine.ts')
    const found = await examine(place, keys, { isAppendOnly, measureBytes: 0 })
    if (found.address) return found.address
    const fault = found.findings.find(({ status }) => status === 'fail')
    throw new Unusable(fault?.detail ?? 'The bucket cannot be used.')
  }

  return {
    place: formatS3Place(place),
    async open(options) {
      address ??= await findAddress()
      return await openBlobStore(address, options)
    },
    describe: (error) =>
      error instanceof Unusable || error instanceof S3Fault
        ? error.message
        : 'The off-site store does not answer as it should.',
    bytesPerSecond,
    isAppendOnly,
  }
}
