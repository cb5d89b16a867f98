// What went wrong between us and a bucket: a code to switch on, a sentence for whoever has to mend it, and whether it may
// pass by itself. Told apart by the codes of S3, of HTTP and of the system, never by a text.
import type { S3Address } from './address.ts'

export type S3FaultCode =
  | 'wrong_key'
  | 'wrong_region'
  | 'clock_skew'
  | 'no_permission'
  | 'no_bucket'
  | 'unreachable'
  | 'untrusted'
  | 'slow_down'
  | 'stalled'
  | 'server_error'
  | 'bad_transfer'
  | 'not_supported'
  | 'not_s3'
  | 'refused'

export class S3Fault extends Error {
  readonly code: S3FaultCode
  /** Whether the same request may succeed later. */
  readonly isPassing: boolean
  /** The status of the answer, if there was one. */
  readonly status: number | undefined
  /** S3's own code, such as `NoSuchUpload`. */
  readonly s3Code: string
  /** What the provider asks to wait for. */
  readonly waitMs: number | undefined
  /** Of `wrong_region`: the right one, if the provider says so. */
  readonly region: string | undefined

  constructor(
    code: S3FaultCode,
    message: string,
    known: {
      cause?: unknown
      isPassing?: boolean
      status?: number
      s3Code?: string
      waitMs?: number
      region?: string
    } = {},
  ) {
    super(message, known.cause === undefined ? undefined : { cause: known.cause })
    this.name = 'S3Fault'
    this.code = code
    this.isPassing = known.isPassing ?? false
    this.status = known.status
    this.s3Code = known.s3Code ?? ''
    this.waitMs = known.waitMs
    this.region = known.region
  }
}

/** Which right a request needs, as policies call it. */
const RIGHTS: Readonly<Record<string, string>> = {
  HeadObject: 's3:GetObject',
  ListObjectsV2: 's3:ListBucket',
  CreateMultipartUpload: 's3:PutObject',
  UploadPart: 's3:PutObject',
  CompleteMultipartUpload: 's3:PutObject',
  ListMultipartUploads: 's3:ListBucketMultipartUploads',
}

/** What the client throws for an answer; of anything else most of it is absent. */
interface Thrown {
  name?: string
  code?: string
  Region?: string
  $metadata?: { httpStatusCode?: number; clockSkewCorrected?: boolean }
  $response?: { statusCode?: number; headers?: Record<string, string> }
}

const codesOf = (fault: S3FaultCode, ...codes: string[]) => codes.map((code) => [code, fault] as const)
const BY_S3_CODE: ReadonlyMap<string, S3FaultCode> = new Map([
  ...codesOf(
    'wrong_key',
    'InvalidAccessKeyId',
    'SignatureDoesNotMatch',
    'InvalidToken',
    'ExpiredToken',
    'TokenRefreshRequired',
  ),
  ...codesOf(
    'wrong_region',
    'AuthorizationHeaderMalformed',
    'PermanentRedirect',
    'TemporaryRedirect',
    'IllegalLocationConstraintException',
  ),
  ...codesOf('clock_skew', 'RequestTimeTooSkewed', 'RequestExpired', 'RequestInTheFuture'),
  ...codesOf('no_permission', 'AccessDenied', 'AllAccessDisabled', 'AccountProblem', 'InvalidObjectState'),
  ...codesOf('no_bucket', 'NoSuchBucket', 'InvalidBucketName'),
  ...codesOf(
    'slow_down',
    'SlowDown',
    'ServiceUnavailable',
    'Throttling',
    'ThrottlingException',
    'TooManyRequests',
    'RequestLimitExceeded',
    'BandwidthLimitExceeded',
  ),
  ...codesOf('stalled', 'RequestTimeout'),
  ...codesOf('server_error', 'InternalError', 'OperationAborted', 'ConditionalRequestConflict'),
  ...codesOf(
    'bad_transfer',
    'BadDigest',
    'InvalidDigest',
    'XAmzContentSHA256Mismatch',
    'XAmzContentChecksumMismatch',
    'IncompleteBody',
  ),
  ...codesOf('not_supported', 'NotImplemented'),
])

const NETWORK = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ERR_STREAM_PREMATURE_CLOSE',
  'HPE_INVALID_CONSTANT',
]
const CERTIFICATE = /^(?:CERT_|ERR_TLS_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/
const PASSING: readonly S3FaultCode[] = ['unreachable', 'slow_down', 'stalled', 'server_error', 'bad_transfer']

/** Of what `operation` has thrown. */
export function toS3Fault(error: unknown, address: S3Address, operation: string): S3Fault {
  if (error instanceof S3Fault) return error
  const thrown = error as Thrown
  const status = thrown.$metadata?.httpStatusCode ?? thrown.$response?.statusCode
  const code = codeFor(thrown, status)
  const headers = thrown.$response?.headers ?? {}
  const region = thrown.Region ?? headers['x-amz-bucket-region']
  const wait = Number(headers['retry-after'])
  return new S3Fault(code, sentenceFor(code, address, operation, thrown, region), {
    cause: error,
    // The client has seen the time of the provider, and signs by it from now on.
    isPassing: PASSING.includes(code) || (code === 'clock_skew' && thrown.$metadata?.clockSkewCorrected === true),
    s3Code: thrown.name ?? '',
    ...(status === undefined ? {} : { status }),
    ...(region === undefined ? {} : { region }),
    ...(Number.isFinite(wait) && wait > 0 ? { waitMs: wait * 1000 } : {}),
  })
}

function codeFor({ name = '', code = '' }: Thrown, status: number | undefined): S3FaultCode {
  const known = BY_S3_CODE.get(name)
  if (known) return known
  if (CERTIFICATE.test(code)) return 'untrusted'
  // OpenSSL's: there is no TLS where it was expected.
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return 'untrusted'
  if (status === undefined) return NETWORK.includes(code) || name === 'TimeoutError' ? 'unreachable' : 'refused'
  return codeForStatus(status)
}

/** Where there is no code: the answer to a HEAD has no body, and a proxy has codes of its own. */
function codeForStatus(status: number): S3FaultCode {
  if (status === 301 || status === 307) return 'wrong_region'
  if (status === 401 || status === 403) return 'no_permission'
  if (status === 408) return 'stalled'
  if (status === 429 || status === 503) return 'slow_down'
  if (status === 501) return 'not_supported'
  if (status >= 500) return 'server_error'
  return status >= 400 ? 'refused' : 'not_s3'
}

function sentenceFor(
  code: S3FaultCode,
  address: S3Address,
  operation: string,
  thrown: Thrown,
  region?: string,
): string {
  const host = hostOf(address)
  const bucket = `the bucket ${address.bucket}`
  switch (code) {
    case 'wrong_key':
      return keySentence(host, thrown.name)
    case 'wrong_region':
      return region
        ? `${bucketAtStart(address)} is in the region ${region}, not in ${address.region}. Set region=${region}.`
        : `${host} refuses the region ${address.region}. Set region= to the one that the provider shows for ${bucket}.`
    case 'clock_skew':
      return `The clock of this machine and that of ${host} are too far apart. Synchronise this one with NTP.`
    case 'no_permission':
      return `The key may not do ${RIGHTS[operation] ?? `s3:${operation}`} in ${bucket}. Allow it in the policy of the key or of the bucket.`
    case 'no_bucket':
      return `There is no bucket ${address.bucket} at ${host}. Create it, or correct its name or the endpoint.`
    case 'unreachable':
      return `${host} cannot be reached${thrown.code ? ` (${thrown.code})` : ''}. Check the endpoint, the network and the firewall.`
    case 'untrusted':
      return `No trusted connection to ${host} (${thrown.code}). Check that the endpoint speaks TLS; for a certificate of your own set NODE_EXTRA_CA_CERTS.`
    case 'slow_down':
      return `${host} asks for fewer requests. It is tried again later.`
    case 'stalled':
      return `${host} stopped in the middle of ${operation}.`
    case 'server_error':
      return `${host} failed to do ${operation}${detailOf(thrown)}.`
    case 'bad_transfer':
      return `What arrived at ${host} is not what was sent${detailOf(thrown)}.`
    case 'not_supported':
      return `${host} does not support ${operation} as it was asked for.`
    case 'not_s3':
      return `${host} does not answer as S3 does. Check the endpoint.`
    case 'refused':
      return `${host} refuses ${operation}${detailOf(thrown)}.`
  }
}

function keySentence(host: string, s3Code = ''): string {
  if (s3Code === 'SignatureDoesNotMatch')
    return `The secret of the key is wrong, says ${host}. Set the one that belongs to its id.`
  if (s3Code === 'InvalidAccessKeyId')
    return `${host} does not know the id of the key. Check it, and that it belongs to this provider.`
  return `The session token is not valid or no longer, says ${host}. Set a new one, or a key that needs none.`
}

const bucketAtStart = ({ bucket }: S3Address) => `The bucket ${bucket}`
export const hostOf = ({ endpoint, region }: S3Address) =>
  endpoint ? new URL(endpoint).host : `s3.${region}.amazonaws.com`

function detailOf({ name, code, $metadata }: Thrown): string {
  const details = [name, code, $metadata?.httpStatusCode].filter((detail) => detail && detail !== 'Error')
  return details.length > 0 ? ` (${details.join(', ')})` : ''
}
