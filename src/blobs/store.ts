// The BlobStore port: named, immutable bytes. The backups' packs, indexes and manifests go through it, to a local disk
// or to an object store. Every adapter runs the suite in store.contract.ts.
import { hasCode } from '../kit/files/errno.ts'

export interface BlobInfo {
  name: string
  sizeBytes: number
  /** Milliseconds since the epoch, by the store's own clock. */
  modifiedAt: number
}

export interface ByteRange {
  offset: number
  length: number
}

export interface BlobStore {
  /**
   * Begins a blob. Nothing of it may be visible to `get` and `list`, also after a crash, until `commit` has returned.
   * What an abandoned writer leaves must be cleared away by the time the store is next opened. Blobs are immutable: where
   * one of that name holds other bytes, `commit` may throw `BlobExists`, and does so elsewhere than on a local disk.
   */
  create(name: string): Promise<BlobWriter>
  /** A whole blob at once, under the same obligations. A blob of that name is replaced in one step. */
  put(name: string, bytes: Uint8Array): Promise<void>
  /**
   * A whole blob from a source that can be read again, under the obligations of `create`, in memory that does not grow with
   * it: for stores over a network, where what was sent may have to be sent once more. See `copyBlob`.
   */
  copyIn?(name: string, source: BlobSource, options?: CopyOptions): Promise<void>
  /**
   * The bytes of the range, or all of them. Fewer only where the blob ends early. Throws `BlobMissing` where there is
   * none. Where `into` is given and large enough, the answer is a view of it.
   */
  get(name: string, range?: ByteRange, into?: Uint8Array): Promise<Uint8Array>
  /**
   * For several ranges of one blob. Throws `BlobMissing` where there is none. Whoever opens it closes it. On a local disk
   * it stays readable until then, also when the blob is deleted meanwhile; elsewhere `get` may throw `BlobMissing`.
   */
  open(name: string): Promise<BlobReader>
  /** As `open`, at once, on the thread that calls: for stores on a local disk. */
  openNow?(name: string): BlobReaderNow
  /** Throws `BlobMissing` where there is none. */
  stat(name: string): Promise<BlobInfo>
  /** Every blob whose name starts with `prefix`, in no promised order, in memory that does not grow with the store. */
  list(prefix: string): AsyncIterable<BlobInfo>
  /**
   * Every blob, where one request tells them all; undefined where there are more. For stores over a network: whoever needs
   * several prefixes asks once.
   */
  listAll?(): Promise<BlobInfo[] | undefined>
  /** Must be idempotent. Once it returns, the blob stays gone also after a power failure. */
  delete(name: string): Promise<void>
}

/** One over a network, which can do all but what needs a disk of its own. */
export type RemoteStore = Required<Omit<BlobStore, 'openNow'>>

export interface BlobSource {
  sizeBytes: number
  /** Throws where there is less. The bytes must not change afterwards. `into`: as `BlobStore.get`. */
  read(range: ByteRange, into?: Uint8Array): Promise<Uint8Array>
}

export interface CopyOptions {
  /** What has that name gives way, in one step. */
  replace?: boolean
  /** Awaited before so many bytes are sent, for a rate. */
  pace?: (bytes: number) => Promise<void>
  signal?: AbortSignal
}

/** What was written is lost, as far as can be told. Any other failure of reading may pass, and says nothing about it. */
export function isLost(error: unknown): boolean {
  return error instanceof BlobMissing || error instanceof BlobDamaged || hasCode(error, 'EIO')
}

export interface BlobReader {
  /** As `BlobStore.get`. */
  get(range: ByteRange, into?: Uint8Array): Promise<Uint8Array>
  close(): Promise<void>
}

export interface BlobReaderNow extends Disposable {
  /** As `BlobStore.get`. */
  get(range: ByteRange, into?: Uint8Array): Uint8Array
}

export interface BlobWriter {
  /** Resolves when the store has taken the bytes, so that a caller who waits holds no more than one chunk. */
  write(bytes: Uint8Array): Promise<void>
  /**
   * Once it returns, the blob is whole, visible and survives a power failure. It must not be visible before its bytes
   * are durable. A failed commit leaves nothing.
   */
  commit(): Promise<void>
  /** Must be idempotent, also after a failed write. The space is given back. */
  abort(): Promise<void>
}

export class BlobMissing extends Error {
  readonly code = 'blob_missing'

  constructor(name: string, cause?: unknown) {
    super(`no blob ${name}`, cause === undefined ? undefined : { cause })
    this.name = 'BlobMissing'
  }
}

/** The store itself knows that the bytes are not those that were written. */
export class BlobDamaged extends Error {
  readonly code = 'blob_damaged'

  constructor(name: string, cause?: unknown) {
    super(
      `the blob ${name} does not have the checksum that it was stored with`,
      cause === undefined ? undefined : { cause },
    )
    this.name = 'BlobDamaged'
  }
}

/** Nothing is overwritten: a blob of that name is there, and holds other bytes. */
export class BlobExists extends Error {
  readonly code = 'blob_exists'

  constructor(name: string, cause?: unknown) {
    super(`there is another blob ${name}`, cause === undefined ? undefined : { cause })
    this.name = 'BlobExists'
  }
}

/** Segments of lower-case letters, digits, `_` and `-`: what every file system and object store takes as it is. */
const NAME = /^[a-z0-9_-]{1,128}(\/[a-z0-9_-]{1,128}){0,3}$/

export const isBlobName = (name: string) => NAME.test(name)

export function checkBlobName(name: string): string {
  if (!isBlobName(name)) throw new Error(`not a blob name: ${JSON.stringify(name)}`)
  return name
}
