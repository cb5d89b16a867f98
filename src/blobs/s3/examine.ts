// Whether a bucket will do, in words: everything that the mirror needs is tried on it once.
import { randomBytes } from 'node:crypto'
import type { S3Keys, S3Place } from '../../contract/offsite-place.ts'
import { BlobDamaged, BlobMissing, type BlobStore } from '../store.ts'
import { type S3Address, type S3Traits, s3Address } from './address.ts'
import { hostOf, S3Fault } from './faults.ts'
import {
  chooseProbe,
  isOwnProbe,
  ownProbe,
  PROBE_BYTES,
  PROBE_FOLDER,
  probePlace,
  probeTraits,
  type Reached,
} from './probe.ts'
import { PATIENCE, type Patience } from './requests.ts'
import { openS3Store } from './s3-store.ts'

export interface Finding {
  check: string
  status: 'ok' | 'warn' | 'fail' | 'skip'
  detail: string
  /** Of `fail`: what programs switch on. */
  code?: string
}

export interface Examination {
  /** With everything found out about the provider; null where the bucket cannot be used. */
  address: S3Address | null
  findings: Finding[]
}

export interface ExamineOptions {
  /** Whether the key is meant to be one that may not delete. */
  isAppendOnly: boolean
  /** How many bytes to measure the speed with, there and back; 0: it is not measured. */
  measureBytes: number
  report?: (finding: Finding) => void
  patience?: Patience
}

/** Somebody waits for it, or will have it done again. */
const EXAMINE_PATIENCE: Patience = { ...PATIENCE, attempts: 3, stallMs: 30_000 }
const SKEW_WARN_MS = 60_000
/** No examination takes that long: its process has died. */
const ABANDONED_MS = 3600_000

/** Never throws for what the bucket, the key or the network does: that is a finding. */
export async function examine(place: S3Place, keys: S3Keys, options: ExamineOptions): Promise<Examination> {
  const findings: Finding[] = []
  const add = (finding: Finding) => {
    findings.push(finding)
    options.report?.(finding)
  }
  const patience = options.patience ?? EXAMINE_PATIENCE
  const given = s3Address(place, keys)
  let address: S3Address | null = null
  /** Takes away what it has written, should it end early. */
  let cleanUp = async () => {}
  try {
    for (const finding of checkConnection(place)) add(finding)
    const reached = await attempt(add, 'bucket', () => probePlace(given, place.region !== null, patience))
    add(describePlace(given, reached.address))
    add(describeClock(reached))
    const probe = await attempt(add, 'delete', () => chooseProbe(reached.address, patience))
    const traits = await attempt(add, 'write', () => probeTraits(reached.address, probe, patience))
    address = { ...reached.address, traits }
    for (const finding of describeTraits(address)) add(finding)
    const store = await openS3Store(address, { clear: false }, patience)
    cleanUp = () => deleteAll(store, [probe])
    await attempt(add, 'read', () => checkReading(store, probe))
    add({ check: 'read', status: 'ok', detail: 'whole and in part' })
    const abandoned = await attempt(add, 'list', () => checkListing(store, probe))
    add({ check: 'list', status: 'ok', detail: 'what was written is listed' })
    const canDelete = await attempt(add, 'delete', () => tryDelete(store, probe))
    if (canDelete) await deleteAll(store, abandoned)
    add(describeDeleting(canDelete, options.isAppendOnly))
    if (options.measureBytes > 0)
      add(await attempt(add, 'speed', () => checkSpeed(store, options.measureBytes, canDelete)))
  } catch (error) {
    if (!(error instanceof Failed)) throw error
    await cleanUp()
    address = null
  }
  return { address, findings }
}

/** It is among the findings already. */
class Failed extends Error {}

async function attempt<T>(add: (finding: Finding) => void, check: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof S3Fault || error instanceof BlobMissing || error instanceof BlobDamaged)) throw error
    add({ check, status: 'fail', detail: error.message, code: error.code })
    throw new Failed()
  }
}

function checkConnection({ endpoint }: S3Place): Finding[] {
  const url = endpoint === null ? undefined : new URL(endpoint)
  if (url?.protocol !== 'http:' || /^(localhost|127\..*|\[::1\])$/.test(url.hostname)) return []
  const detail = `${url.host} is spoken to without TLS: whoever is in between can read and change what is sent.`
  return [{ check: 'connection', status: 'warn', detail }]
}

function describePlace(given: S3Address, reached: S3Address): Finding {
  const { bucket, region, traits } = reached
  const how = traits.addressing === given.traits.addressing ? '' : `, addressed by ${traits.addressing}`
  const where = region === given.region ? region : `${region}, as the provider says`
  return { check: 'bucket', status: 'ok', detail: `${bucket} at ${hostOf(reached)} answers${how}; region ${where}` }
}

function describeClock({ address, skewMs }: Reached): Finding {
  if (Math.abs(skewMs) < SKEW_WARN_MS)
    return { check: 'clock', status: 'ok', detail: 'agrees with that of the provider' }
  const minutes = Math.round(Math.abs(skewMs) / 60_000)
  const detail = `This machine is ${minutes} minutes ${skewMs > 0 ? 'behind' : 'ahead of'} ${hostOf(address)}. Synchronise it with NTP.`
  return { check: 'clock', status: 'warn', detail, code: 'clock_skew' }
}

const CHECKSUMS: Record<S3Traits['checksum'], string> = {
  crc32: 'CRC-32 is compared by the provider',
  md5: 'MD5 is compared by the provider, which does not compare CRC-32',
  signature: 'the provider compares neither CRC-32 nor MD5: SHA-256 is sent with the signature',
}

function describeTraits({ traits }: S3Address): Finding[] {
  const { checksum, conditionalPut, conditionalMultipart } = traits
  const refusal = 'the provider refuses to overwrite'
  const instead = 'the provider has no conditional writes; whether a blob is there is asked before it is sent'
  const half = `${refusal} what comes in one request; before one that comes in parts, whether it is there is asked`
  return [
    { check: 'write', status: 'ok', detail: 'in one request and in parts' },
    { check: 'checksums', status: 'ok', detail: CHECKSUMS[checksum] },
    { check: 'overwriting', status: 'ok', detail: conditionalPut ? (conditionalMultipart ? refusal : half) : instead },
  ]
}

async function checkReading(store: BlobStore, probe: string): Promise<void> {
  const whole = Buffer.from(await store.get(probe))
  const part = Buffer.from(await store.get(probe, { offset: 5, length: 10 }))
  if (!whole.equals(PROBE_BYTES) || !part.equals(PROBE_BYTES.subarray(5, 15)))
    throw new S3Fault('bad_transfer', 'What is read is not what was written.')
}

/** Answers what examinations that were cut short have left. */
async function checkListing(store: BlobStore, probe: string): Promise<string[]> {
  const listed = await Array.fromAsync(store.list(PROBE_FOLDER))
  const own = listed.find(({ name, sizeBytes }) => name === probe && sizeBytes === PROBE_BYTES.length)
  if (!own) throw new S3Fault('not_s3', 'What was written is not in the list of the bucket.')
  // By the clock of the provider: ours may be wrong.
  return listed
    .filter(({ name, modifiedAt }) => isOwnProbe(name) && modifiedAt < own.modifiedAt - ABANDONED_MS)
    .map(({ name }) => name)
}

/** What cannot be deleted does no harm. */
async function deleteAll(store: BlobStore, names: readonly string[]): Promise<void> {
  for (const name of names) await store.delete(name).catch(() => {})
}

async function tryDelete(store: BlobStore, name: string): Promise<boolean> {
  try {
    await store.delete(name)
  } catch (error) {
    if (error instanceof S3Fault && error.code === 'no_permission') return false
    throw error
  }
  try {
    // Not `stat`: what has no body does not say what is missing, and would be asked for once more.
    await store.get(name, { offset: 0, length: 1 })
  } catch (error) {
    if (error instanceof BlobMissing) return true
    throw error
  }
  throw new S3Fault('not_s3', 'What was deleted is still there.')
}

function describeDeleting(canDelete: boolean, isAppendOnly: boolean): Finding {
  const check = 'delete'
  if (isAppendOnly && canDelete) {
    const detail = 'The key may delete although GAMEKEEPER_OFFSITE_APPEND_ONLY is set: whoever steals it may, too.'
    return { check, status: 'warn', detail }
  }
  if (isAppendOnly) return { check, status: 'ok', detail: 'the key may not, as it should be' }
  if (canDelete) return { check, status: 'ok', detail: 'what is deleted is gone' }
  const detail =
    'The key may not do s3:DeleteObject: allow it, or set GAMEKEEPER_OFFSITE_APPEND_ONLY=1 if it is meant so.'
  return { check, status: 'warn', detail, code: 'no_permission' }
}

async function checkSpeed(store: BlobStore, bytes: number, canDelete: boolean): Promise<Finding> {
  const check = 'speed'
  if (!canDelete) return { check, status: 'skip', detail: 'measured only with what can be deleted again' }
  const sent = randomBytes(bytes)
  const blob = ownProbe('speed')
  const began = performance.now()
  await store.put(blob, sent)
  const between = performance.now()
  await store.get(blob)
  const ended = performance.now()
  await store.delete(blob)
  const rate = (ms: number) => `${((bytes / ms) * 0.001).toFixed(1)} MB/s`
  return {
    check,
    status: 'ok',
    detail: `${rate(between - began)} there, ${rate(ended - between)} back, over one connection`,
  }
}
