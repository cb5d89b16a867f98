// A bucket as the place of the mirror.
import { type Bucket, BucketUnusable } from '../../blobs/bucket.ts'
import { StoreUnreachable } from '../../blobs/layered.ts'
import { S3Fault } from '../../blobs/s3/faults.ts'
import { formatS3Place, type S3Place } from '../../contract/offsite-place.ts'
import type { MirrorTarget } from './index.ts'

export function s3Target(
  bucket: Pick<Bucket, 'openMirror' | 'warnings'>,
  settings: { place: S3Place } & Pick<MirrorTarget, 'bytesPerSecond' | 'isAppendOnly'>,
): MirrorTarget {
  return {
    ...settings,
    place: formatS3Place(settings.place),
    open: bucket.openMirror,
    warnings: bucket.warnings,
    describe(error) {
      const cause = error instanceof StoreUnreachable ? error.cause : error
      return cause instanceof BucketUnusable || cause instanceof S3Fault
        ? cause.message
        : 'The off-site store does not answer as it should.'
    },
  }
}
