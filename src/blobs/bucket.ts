// A bucket as one process uses it: where it is, and what its provider can do, is found out once, and only as far as that is
// needed.
import type { S3Keys, S3Place } from '../contract/offsite-place.ts'
import { onceDone } from './once-done.ts'
import { type S3Address, type S3Traits, s3Address } from './s3/address.ts'
import { type BlobStore, isLost, type RemoteStore } from './store.ts'

export interface BucketSettings {
  place: S3Place
  keys: S3Keys
  /** Whether the key is meant to be one that may not delete. */
  isAppendOnly?: boolean
  /** What another process has found out, if that was lately. */
  found?: FoundBucket | undefined
}

/** Where a bucket is that was read, listed and written to with these keys. */
export interface FoundBucket {
  region: string
  addressing: S3Traits['addressing']
  /** Milliseconds since the epoch: from then on it is asked again. */
  goodUntil: number
}

export interface Bucket extends Pick<BucketSettings, 'place' | 'keys'> {
  /** For whoever reads, or replaces what is small: only where the bucket is has to be known. Throws `S3Fault`. */
  open(): Promise<BlobStore>
  /**
   * For a mirror: everything that one needs is tried on the bucket first. Where it was found to work lately, that is done
   * before something is written. Throws `BucketUnusable`, and `S3Fault`.
   */
  openMirror(options: { clear: boolean }): Promise<BlobStore>
  /** What the examination has found that does not keep the bucket from being used; nothing until there was one. */
  warnings(): readonly BucketWarning[]
  /** Undefined until `open` has found it. */
  whereabouts(): Omit<FoundBucket, 'goodUntil'> | undefined
}

export interface BucketWarning {
  /** What was tried, as `Finding.check`. */
  check: string
  /** A sentence. */
  detail: string
}

/** What is wrong with the bucket, the key or the way there, in a sentence. */
export class BucketUnusable extends Error {}

export function createBucket({ place, keys, isAppendOnly = false, found }: BucketSettings): Bucket {
  const given = s3Address(place, keys)
  let located: Omit<FoundBucket, 'goodUntil'> | undefined
  /** Whether what was found lately counts no more: something has failed, or more is known by now. */
  let isSuperseded = false
  let warnings: readonly BucketWarning[] = []

  // Each imports what it needs only now: a service does not wait for the client of S3 to be read from disk.
  const locate = onceDone(async () => {
    const { findPlace } = await import('./s3/probe.ts')
    const { address, listed } = await findPlace(given, place.region !== null)
    located = whereaboutsOf(address)
    return { listed, ...located }
  })
  const examineAll = onceDone(async () => {
    const { examine } = await import('./s3/examine.ts')
    const { address, findings } = await examine(place, keys, { isAppendOnly, measureBytes: 0 })
    if (!address) {
      const fault = findings.find(({ status }) => status === 'fail')
      throw new BucketUnusable(fault?.detail ?? 'The bucket cannot be used.')
    }
    located = whereaboutsOf(address)
    warnings = findings.filter(({ status }) => status === 'warn')
    isSuperseded = true
    return address
  })

  const foundLately = () => (found && !isSuperseded && Date.now() < found.goodUntil ? found : undefined)

  /** Whatever else is known of the provider: each format of ours has checksums of its own, and says what is damaged by them. */
  function openAt({ region, addressing }: Omit<FoundBucket, 'goodUntil'>): Promise<RemoteStore> {
    return openS3({ ...given, region, traits: { ...given.traits, addressing } }, { clear: false })
  }

  async function openPlain(): Promise<RemoteStore> {
    const known = located ?? foundLately()
    if (known) return await openAt(known)
    const { listed, ...where } = await locate()
    const store = await openAt(where)
    let isFirst = true
    return {
      ...store,
      // Told when the bucket was found: whoever lists it first does not ask once more.
      async listAll() {
        if (!isFirst) return await store.listAll()
        isFirst = false
        return listed
      },
    }
  }

  /** As long as it counts what was found lately, reading does without the examination. */
  function examinedBeforeWriting(options: { clear: boolean }): BlobStore {
    const examined = onceDone(async () => openS3(await examineAll(), options))
    const plain = onceDone(openPlain)
    const forReading = () => (foundLately() ? plain() : examined())
    function doubted(error: unknown): never {
      if (!isLost(error)) isSuperseded = true
      throw error
    }
    const reading = <T>(read: (store: RemoteStore) => Promise<T>) => forReading().then(read).catch(doubted)
    return {
      create: async (name) => (await examined()).create(name),
      put: async (name, bytes) => (await examined()).put(name, bytes),
      copyIn: async (...request) => (await examined()).copyIn(...request),
      delete: async (name) => (await examined()).delete(name),
      get: (name, range, into) => reading((store) => store.get(name, range, into)),
      open: (name) => reading((store) => store.open(name)),
      stat: (name) => reading((store) => store.stat(name)),
      listAll: () => reading((store) => store.listAll()),
      async *list(prefix) {
        try {
          yield* (await forReading()).list(prefix)
        } catch (error) {
          doubted(error)
        }
      },
    }
  }

  return {
    place,
    keys,
    open: openPlain,
    async openMirror(options) {
      return foundLately() ? examinedBeforeWriting(options) : await openS3(await examineAll(), options)
    },
    warnings: () => warnings,
    whereabouts: () => located,
  }
}

const whereaboutsOf = ({ region, traits }: S3Address) => ({ region, addressing: traits.addressing })

async function openS3(address: S3Address, options: { clear: boolean }): Promise<RemoteStore> {
  const { openS3Store } = await import('./s3/s3-store.ts')
  return await openS3Store(address, options)
}
