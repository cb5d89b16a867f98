// The place of the mirror as one run sees it: what fails there is told in words that callers may see, and nothing waits for
// it for ever.
import { BlobDamaged, BlobExists, BlobMissing, type BlobStore, type BlobWriter } from '../../blobs/store.ts'
import { fail, isFailure } from '../../contract/errors.ts'
import { toFailure } from '../../http/problem.ts'
import { hasCode } from '../../kit/files/errno.ts'

/** A store gives up sooner by itself: this is for one that does not. */
export const STALLED_MS = 15 * 60_000
const ABORT_MS = 5000
/** What is wrong with a blob, and not with the place. */
const OF_BLOBS = [BlobMissing, BlobExists, BlobDamaged]

export interface Guard {
  /** Ends every call, whether the store hears of it or not. */
  signal: AbortSignal
  /** What went wrong, in a sentence without secrets. */
  describe: (error: unknown) => string
  stalledMs?: number | undefined
}

export function guardStore(store: BlobStore, { signal, describe, stalledMs = STALLED_MS }: Guard): BlobStore {
  function explained(error: unknown): unknown {
    if (signal.aborted) return signal.reason
    if (OF_BLOBS.some((kind) => error instanceof kind)) return error
    const failure = toFailure(error)
    return failure.code === 'internal' ? fail('offsite_unreachable', describe(error), error) : failure
  }

  async function bounded<T>(work: () => Promise<T>, ms = stalledMs): Promise<T> {
    try {
      return await inTime(work, signal, ms)
    } catch (error) {
      throw explained(error)
    }
  }

  /** What is left behind is cleared away when the store is next opened, or by its own rules. */
  async function abandon(writer: BlobWriter): Promise<void> {
    const timeout = Promise.withResolvers<void>()
    const timer = setTimeout(timeout.resolve, ABORT_MS)
    await Promise.race([writer.abort(), timeout.promise]).catch(() => {})
    clearTimeout(timer)
  }

  const { copyIn } = store
  return {
    async create(name) {
      const writer = await bounded(() => store.create(name))
      return {
        write: (bytes) => bounded(() => writer.write(bytes)),
        commit: () => bounded(() => writer.commit()),
        abort: () => abandon(writer),
      }
    },
    // At a low rate a whole blob may take longer than any single answer: such a store has limits of its own.
    ...(copyIn
      ? { copyIn: (...request) => bounded(() => copyIn.apply(store, request), Number.POSITIVE_INFINITY) }
      : {}),
    put: (name, bytes) => bounded(() => store.put(name, bytes)),
    get: (name, range, into) => bounded(() => store.get(name, range, into)),
    open: (name) => bounded(() => store.open(name)),
    stat: (name) => bounded(() => store.stat(name)),
    async *list(prefix) {
      const blobs = store.list(prefix)[Symbol.asyncIterator]()
      for (;;) {
        const next = await bounded(() => blobs.next())
        if (next.done) return
        yield next.value
      }
    },
    listAll: () => bounded(async () => store.listAll?.()),
    delete: (name) => bounded(() => store.delete(name)),
  }
}

/** Of what a guarded store has thrown: why the key may not do it, in a sentence; undefined where that is not the reason. */
export function refusalIn(error: unknown): string | undefined {
  if (!isFailure(error, 'offsite_unreachable')) return undefined
  return hasCode(error.cause, 'no_permission') ? error.detail : undefined
}

/** The work goes on where it is, but nobody waits for it any longer. */
export async function inTime<T>(work: () => Promise<T>, signal: AbortSignal, ms: number): Promise<T> {
  signal.throwIfAborted()
  const end = Promise.withResolvers<never>()
  const stalled = () => end.reject(fail('offsite_unreachable', 'The off-site store takes too long to answer.'))
  const timer = Number.isFinite(ms) ? setTimeout(stalled, ms) : undefined
  const abort = () => end.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work(), end.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}
