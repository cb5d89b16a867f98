// What a provider can do, found out by trying it on one small blob of ours: nobody has to look up what theirs supports.
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3'
import type { BlobInfo } from '../store.ts'
import type { S3Address, S3Traits } from './address.ts'
import { type Digest, digestOf, memorySource } from './bodies.ts'
import { S3Fault } from './faults.ts'
import { beginMultipart, isRefusedCondition } from './multiparts.ts'
import { createRequests, type Patience, type Requests, rootOf, withHeaders } from './requests.ts'
import { openS3Store, readPage } from './s3-store.ts'
import { speaksTls } from './speaks-tls.ts'

export const PROBE_FOLDER = 'probe/'
/**
 * For keys that may not delete, of which it stays. They may all share it: each writes the same bytes, and none takes it away
 * from another.
 */
const LASTING_BLOB = `${PROBE_FOLDER}blob`
/** Never written. */
const ABSENT_BLOB = `${PROBE_FOLDER}none`
export const PROBE_BYTES = Buffer.from('Gamekeeper has tried here whether it can store backups.\n')
const OTHER_BYTES = Buffer.from('These are other bytes.\n')

export interface Reached {
  /** As it is to be spoken to. */
  address: S3Address
  /** By how much the provider's clock is ahead of ours. */
  skewMs: number
}

export interface Found {
  address: S3Address
  /** What the answer has told by the way, as `BlobStore.listAll` does. */
  listed: BlobInfo[] | undefined
}

/** For whoever only reads. Throws `S3Fault`. */
export async function findPlace(address: S3Address, isRegionGiven: boolean): Promise<Found> {
  return await reachPlace(address, isRegionGiven, async (candidate) => {
    using requests = createRequests(candidate)
    const { blobs, next } = await readPage(requests, '')
    return { address: candidate, listed: next === undefined ? blobs : undefined }
  })
}

/** Throws `S3Fault` where the bucket cannot be used at all. */
export function probePlace(address: S3Address, isRegionGiven: boolean, patience: Patience): Promise<Reached> {
  return reachPlace(address, isRegionGiven, (candidate) => listOne(candidate, patience))
}

/** By the first address under which the bucket answers. */
async function reachPlace<T>(
  address: S3Address,
  isRegionGiven: boolean,
  reach: (candidate: S3Address) => Promise<T>,
): Promise<T> {
  let failure: S3Fault | undefined
  for (const candidate of [address, ...otherAddressing(address)]) {
    try {
      return await inItsRegion(candidate, isRegionGiven, reach)
    } catch (error) {
      if (!(error instanceof S3Fault)) throw error
      failure ??= error
      if (!mayBeAddressing(error)) break
    }
  }
  throw failure && (await withTlsHint(failure, address))
}

/** What a server that expects TLS says to plain HTTP differs, and mostly says nothing. */
async function withTlsHint(failure: S3Fault, { endpoint }: S3Address): Promise<S3Fault> {
  const mayBeTls = ['unreachable', 'stalled', 'not_s3', 'refused', 'server_error'].includes(failure.code)
  if (!endpoint?.startsWith('http:') || !mayBeTls || !(await speaksTls(endpoint))) return failure
  const { host } = new URL(endpoint)
  const sentence = `${host} does not speak plain HTTP: this looks like https. Set endpoint=https://${host}.`
  return new S3Fault('not_s3', sentence, { cause: failure })
}

/** Where the bucket is said to be elsewhere, and nobody has insisted on where it is. */
async function inItsRegion<T>(
  address: S3Address,
  isRegionGiven: boolean,
  reach: (candidate: S3Address) => Promise<T>,
): Promise<T> {
  try {
    return await reach(address)
  } catch (error) {
    const region = error instanceof S3Fault && error.code === 'wrong_region' ? error.region : undefined
    if (isRegionGiven || region === undefined || region === address.region) throw error
    return await reach({ ...address, region })
  }
}

async function listOne(address: S3Address, patience: Patience): Promise<Reached> {
  using requests = createRequests(address, patience)
  const { client } = requests
  const input = { Bucket: address.bucket, Prefix: rootOf(address), MaxKeys: 1 }
  await requests.run('ListObjectsV2', ({ signal }) =>
    client.send(new ListObjectsV2Command(input), { abortSignal: signal }),
  )
  // The client compares the clocks, and signs by that of the provider.
  return { address, skewMs: client.config.systemClockOffset }
}

/** Some take only one of the two ways to name a bucket, and say all kinds of things about the other. */
const mayBeAddressing = ({ code }: S3Fault) => ['no_bucket', 'not_s3', 'refused', 'not_supported'].includes(code)

function otherAddressing(address: S3Address): S3Address[] {
  const { endpoint, bucket, traits } = address
  if (endpoint === null || bucket.includes('.') || isIP(new URL(endpoint).hostname.replace(/[[\]]/g, ''))) return []
  return [{ ...address, traits: { ...traits, addressing: traits.addressing === 'path' ? 'host' : 'path' } }]
}

/** The name of a blob that nobody else tries anything on, or of one that nobody takes away. Throws `S3Fault`. */
export async function chooseProbe(address: S3Address, patience: Patience): Promise<string> {
  const store = await openS3Store(address, { clear: false }, patience)
  try {
    await store.delete(ABSENT_BLOB)
  } catch (error) {
    if (error instanceof S3Fault && error.code === 'no_permission') return LASTING_BLOB
    throw error
  }
  return ownProbe('blob')
}

/** Below `PROBE_FOLDER` there may be blobs of others. */
export const isOwnProbe = (name: string) => /^probe\/(?:blob|speed)-[0-9a-f]{16}$/.test(name)
export const ownProbe = (what: 'blob' | 'speed') => `${PROBE_FOLDER}${what}-${randomBytes(8).toString('hex')}`

/** Leaves the blob `name` there. Throws `S3Fault` where nothing can be written. */
export async function probeTraits(address: S3Address, name: string, patience: Patience): Promise<S3Traits> {
  const checksum = await probeChecksum(address, name, patience)
  using requests = createRequests({ ...address, traits: { ...address.traits, checksum } }, patience)
  return {
    ...address.traits,
    checksum,
    conditionalPut: await refusesToOverwrite(requests, name),
    conditionalMultipart: await refusesToComplete(requests, name),
  }
}

/** One that the provider takes, and does compare: with wrong ones it must refuse what it is given. */
async function probeChecksum(address: S3Address, name: string, patience: Patience): Promise<S3Traits['checksum']> {
  for (const checksum of ['crc32', 'md5'] as const) {
    const probed = { ...address, traits: { ...address.traits, checksum } }
    using requests = createRequests(probed, patience)
    // It is meant to fail: once more only for a clock that has to be corrected first.
    using hasty = createRequests(probed, { ...patience, attempts: 2 })
    const right = await digestOf(memorySource(PROBE_BYTES), checksum)
    const wrong = await digestOf(memorySource(OTHER_BYTES), checksum)
    if (!(await isTaken(requests, name, right))) continue
    if (!(await isTaken(hasty, name, wrong))) return checksum
  }
  using requests = createRequests(address, patience)
  await put(requests, name, await digestOf(memorySource(PROBE_BYTES), 'signature'))
  return 'signature'
}

/** False: not in this form. Whatever is no matter of form is thrown. */
async function isTaken(requests: Requests, name: string, digest: Digest): Promise<boolean> {
  try {
    await put(requests, name, digest)
    return true
  } catch (error) {
    if (isRefusal(error)) return false
    throw error
  }
}

const isRefusal = (error: unknown) =>
  error instanceof S3Fault && ['refused', 'bad_transfer', 'not_supported'].includes(error.code)

async function put(
  requests: Requests,
  name: string,
  { input, headers }: Digest,
  condition: { IfNoneMatch?: string } = {},
): Promise<void> {
  const sized = { ...requests.place(name), ...input, ...condition, ContentLength: PROBE_BYTES.length }
  await requests.run('PutObject', ({ signal }) => {
    const command = withHeaders(new PutObjectCommand({ ...sized, Body: PROBE_BYTES }), headers)
    return requests.client.send(command, { abortSignal: signal })
  })
}

/** The blob is there already. A provider that does not know the condition says so, or overwrites. */
async function refusesToOverwrite(requests: Requests, name: string): Promise<boolean> {
  const digest = await digestOf(memorySource(PROBE_BYTES), requests.address.traits.checksum)
  try {
    await put(requests, name, digest, { IfNoneMatch: '*' })
    return false
  } catch (error) {
    if (isRefusedCondition(error)) return true
    if (isRefusal(error)) return false
    throw error
  }
}

async function refusesToComplete(requests: Requests, name: string): Promise<boolean> {
  const multipart = await beginMultipart(requests, name)
  let outcome: 'placed' | 'exists' | undefined
  try {
    await multipart.add(1, memorySource(PROBE_BYTES), {})
    outcome = await multipart.complete({ isConditional: true })
    return outcome === 'exists'
  } catch (error) {
    if (isRefusal(error)) return false
    throw error
  } finally {
    if (outcome !== 'placed') await multipart.abort()
  }
}
