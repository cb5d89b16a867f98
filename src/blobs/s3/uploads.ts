// Blobs on their way into a bucket. Nothing is overwritten: the provider refuses to, or it is asked before.
import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { forEachAtOnce } from '../../kit/waiting/work-group.ts'
import { BlobExists, BlobMissing, type BlobSource, type CopyOptions } from '../store.ts'
import { bodyOf, crcOf, digestOf, sliceOf } from './bodies.ts'
import { readRange, readStat } from './downloads.ts'
import { hostOf, S3Fault } from './faults.ts'
import { beginMultipart, isRefusedCondition } from './multiparts.ts'
import { type Attempt, type Requests, withHeaders } from './requests.ts'

/** What is larger goes in parts: one that fails is all that is sent again. A pack is smaller, and costs one request. */
const SINGLE_BYTES_MAX = 64 * 1024 * 1024
const PART_BYTES = 16 * 1024 * 1024
const PARTS_MAX = 10_000
const PARTS_AT_ONCE = 4
/** Another round only where the blob in the way has gone meanwhile. */
const ROUNDS = 3

/** As `BlobStore.copyIn`. */
export async function upload(
  requests: Requests,
  name: string,
  source: BlobSource,
  options: CopyOptions = {},
): Promise<void> {
  for (let round = 1; round <= ROUNDS; round++) {
    if ((await place(requests, name, source, options)) === 'placed') return
    const found = await compare(requests, name, { sizeBytes: source.sizeBytes, crc: () => crcOf(source) })
    if (found === 'same') return
    if (found === 'other') break
  }
  throw new BlobExists(name)
}

async function place(
  requests: Requests,
  name: string,
  source: BlobSource,
  options: CopyOptions,
): Promise<'placed' | 'exists'> {
  const { traits } = requests.address
  const isSingle = source.sizeBytes <= SINGLE_BYTES_MAX
  const canRefuse = isSingle ? traits.conditionalPut : traits.conditionalMultipart
  if (!options.replace && !canRefuse && (await isThere(requests, name))) return 'exists'
  const isConditional = !options.replace && canRefuse
  return await (isSingle ? placeWhole : placeInParts)(requests, name, source, { ...options, isConditional })
}

type PlaceOptions = CopyOptions & { isConditional: boolean }

async function placeWhole(
  requests: Requests,
  name: string,
  source: BlobSource,
  { isConditional, replace, pace, signal }: PlaceOptions,
): Promise<'placed' | 'exists'> {
  const { input, headers } = await digestOf(source, requests.address.traits.checksum)
  const condition = isConditional ? { IfNoneMatch: '*' } : {}
  const once = async (attempt: Attempt) => {
    const Body = bodyOf(source, attempt, pace)
    const sized = { ...requests.place(name), ...condition, ...input, Body, ContentLength: source.sizeBytes }
    const command = withHeaders(new PutObjectCommand(sized), headers)
    const sending = requests.client.send(command, { abortSignal: attempt.signal })
    const { ChecksumCRC32: stored } = await sending.finally(() => Body.destroy())
    const isOther = stored !== undefined && input.ChecksumCRC32 !== undefined && stored !== input.ChecksumCRC32
    if (isOther) await refuseStored(requests, name)
    return 'placed' as const
  }
  // An answer may be lost after the blob was stored, or cut off by a refusal that comes before all of it was sent.
  const settle = async () => ((await isThere(requests, name)) ? ('exists' as const) : undefined)
  try {
    return await requests.run('PutObject', once, { signal, ...(replace ? {} : { settle }) })
  } catch (error) {
    if (isRefusedCondition(error)) return 'exists'
    throw error
  }
}

/** By its own account the provider has stored something else. It is ours, so it may go; then it is sent once more. */
async function refuseStored(requests: Requests, name: string): Promise<never> {
  await requests.client.send(new DeleteObjectCommand(requests.place(name))).catch(() => {})
  const sentence = `What ${hostOf(requests.address)} has stored is not what was sent.`
  throw new S3Fault('bad_transfer', sentence, { isPassing: true })
}

async function placeInParts(
  requests: Requests,
  name: string,
  source: BlobSource,
  options: PlaceOptions,
): Promise<'placed' | 'exists'> {
  const { sizeBytes } = source
  const partBytes = Math.max(PART_BYTES, Math.ceil(sizeBytes / PARTS_MAX))
  const numbers = Array.from({ length: Math.ceil(sizeBytes / partBytes) }, (_, index) => index + 1)
  const multipart = await beginMultipart(requests, name)
  let outcome: 'placed' | 'exists' | undefined
  try {
    await forEachAtOnce(numbers, PARTS_AT_ONCE, (number) => {
      const from = (number - 1) * partBytes
      return multipart.add(number, sliceOf(source, from, Math.min(partBytes, sizeBytes - from)), options)
    })
    outcome = await multipart.complete(options)
    return outcome
  } finally {
    if (outcome !== 'placed') await multipart.abort()
  }
}

export async function isThere(requests: Requests, name: string): Promise<boolean> {
  try {
    await readStat(requests, name)
    return true
  } catch (error) {
    if (error instanceof BlobMissing) return false
    throw error
  }
}

/** Whether the blob of that name is this one: an answer may be lost after the blob was stored. */
export async function compare(
  requests: Requests,
  name: string,
  expected: { sizeBytes: number; crc: () => Promise<string> },
): Promise<'same' | 'other' | 'gone'> {
  try {
    const found = await readStat(requests, name)
    if (found.sizeBytes !== expected.sizeBytes) return 'other'
    const stored = found.crc ?? (await crcInBucket(requests, name, found.sizeBytes))
    return stored === (await expected.crc()) ? 'same' : 'other'
  } catch (error) {
    if (error instanceof BlobMissing) return 'gone'
    throw error
  }
}

function crcInBucket(requests: Requests, name: string, sizeBytes: number): Promise<string> {
  return crcOf({ sizeBytes, read: (range, into) => readRange(requests, name, range, into) })
}
