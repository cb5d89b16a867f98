// Where a bucket is and how its provider wants to be spoken to, as plain data: a worker thread can open the same one.
import type { S3Keys, S3Place } from '../../contract/offsite-place.ts'

/**
 * What differs between providers. `examine` finds out; until then `defaultTraits`, which every provider can serve.
 */
export interface S3Traits {
  /** Whether the bucket is in the path of a request or in its host. */
  addressing: 'path' | 'host'
  /** Whether `If-None-Match: *` keeps a blob from being overwritten, in one request and at the end of several. */
  conditionalPut: boolean
  conditionalMultipart: boolean
  /** By what the provider checks that it got what was sent: a header of its own, or the signature. */
  checksum: 'crc32' | 'md5' | 'signature'
}

export interface S3Address extends S3Place {
  kind: 's3'
  region: string
  keys: S3Keys
  traits: S3Traits
}

export function s3Address(place: S3Place, keys: S3Keys): S3Address {
  const region = place.region ?? regionOf(place.endpoint)
  return { kind: 's3', ...place, region, keys, traits: defaultTraits(place) }
}

/** A name with a dot has no certificate as part of a host. */
function defaultTraits({ bucket, endpoint }: S3Place): S3Traits {
  const addressing = endpoint === null && !bucket.includes('.') ? 'host' : 'path'
  return { addressing, conditionalPut: false, conditionalMultipart: false, checksum: 'signature' }
}

const USUAL_REGION = 'us-east-1'

/** By the names that providers give their hosts. Where it is wrong, most say which is right. */
const REGION_IN_HOST = [
  /^s3[.-]([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/,
  /^s3\.([a-z]+-[a-z]+-\d{3})\.backblazeb2\.com$/,
  /^s3\.([a-z]{2}-[a-z]+-\d)\.wasabisys\.com$/,
  /^([a-z]{3}\d)\.your-objectstorage\.com$/,
  /^s3\.([a-z]{2}-[a-z]{3})\.scw\.cloud$/,
  /^([a-z]{3}\d)\.digitaloceanspaces\.com$/,
]

function regionOf(endpoint: string | null): string {
  const host = endpoint === null ? '' : new URL(endpoint).hostname
  if (host.endsWith('.r2.cloudflarestorage.com')) return 'auto'
  return REGION_IN_HOST.map((form) => form.exec(host)?.[1]).find((region) => region !== undefined) ?? USUAL_REGION
}
