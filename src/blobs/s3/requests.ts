// Requests to a bucket: signed by AWS's client, a bounded number at once, tried again with jitter while that may help, and
// given up where nothing moves.
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { S3Client } from '@aws-sdk/client-s3'
import { BlobDamaged, BlobMissing, checkBlobName } from '../store.ts'
import type { S3Address } from './address.ts'
import { createDirectGet, type DirectGet, type SignedRequest } from './direct-get.ts'
import { hostOf, S3Fault, toS3Fault } from './faults.ts'

export interface Patience {
  /** Of one request, the first included. */
  attempts: number
  /** What the first pause is at most; each is twice as long at most as the one before, up to the longest. */
  firstPauseMs: number
  longestPauseMs: number
  connectMs: number
  /** How long nothing may move in either direction. */
  stallMs: number
}

export const PATIENCE: Patience = {
  attempts: 6,
  firstPauseMs: 250,
  longestPauseMs: 15_000,
  connectMs: 10_000,
  stallMs: 60_000,
}

const REQUESTS_AT_ONCE = 16

export interface Attempt {
  readonly signal: AbortSignal
  /** Called whenever something has moved. */
  touch(): void
  /** Ends the request, for a reason that is not the provider's: it is thrown as it is, and nothing is tried again. */
  fail(error: unknown): void
}

/** Disposed of, its connections are closed; otherwise those that are idle keep no process from ending. */
export interface Requests extends Disposable {
  readonly address: S3Address
  readonly client: S3Client
  readonly direct: DirectGet
  /** What a request for this blob is about. */
  place(name: string): { Bucket: string; Key: string }
  /**
   * `work` is one request, whose answer it has read to its end when it resolves. Called once more after a failure that may
   * pass. Throws what it has thrown where that is none of S3's, else `S3Fault`. Must not be called from within `work`.
   */
  run<T>(operation: string, work: (attempt: Attempt) => Promise<T>, options?: RunOptions<T>): Promise<T>
}

export interface RunOptions<T> {
  signal?: AbortSignal | undefined
  /** Asked before another attempt: what it would be for, where the failed one may have done it already. */
  settle?: () => Promise<T | undefined>
}

export function createRequests(address: S3Address, patience: Patience = PATIENCE): Requests {
  const client = createClient(address, patience)
  const direct = createDirectGet(patience.connectMs)
  const inSlot = createSlots(REQUESTS_AT_ONCE)

  async function once<T>(
    operation: string,
    work: (attempt: Attempt) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const ending = new AbortController()
    let failure: { error: unknown } | undefined
    const fail = (error: unknown) => {
      failure ??= { error }
      ending.abort()
    }
    const stalled = () =>
      fail(new S3Fault('stalled', `${hostOf(address)} stopped in the middle of ${operation}.`, { isPassing: true }))
    const timer = setTimeout(stalled, patience.stallMs)
    const cancel = () => fail(signal?.reason)
    signal?.addEventListener('abort', cancel)
    try {
      return await work({ signal: ending.signal, touch: () => void timer.refresh(), fail })
    } catch (error) {
      // What is still being sent after an answer would hold its connection for ever.
      ending.abort()
      throw failure ? failure.error : isOwn(error) ? error : toS3Fault(error, address, operation)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
    }
  }

  return {
    address,
    client,
    direct,
    [Symbol.dispose]: () => {
      direct[Symbol.dispose]()
      client.destroy()
    },
    place: (name) => ({ Bucket: address.bucket, Key: rootOf(address) + checkBlobName(name) }),
    async run(operation, work, { signal, settle } = {}) {
      for (let attempt = 1; ; attempt++) {
        signal?.throwIfAborted()
        try {
          return await inSlot(() => once(operation, work, signal))
        } catch (error) {
          if (!(error instanceof S3Fault) || !error.isPassing || attempt >= patience.attempts) throw error
          await delay(pauseBefore(attempt, error, patience), undefined, signal ? { signal } : {})
          const settled = await settle?.()
          if (settled !== undefined) return settled
        }
      }
    },
  }
}

/** What every key of ours begins with. */
export const rootOf = ({ prefix }: S3Address) => (prefix === '' ? '' : `${prefix}/`)

const isOwn = (error: unknown) => error instanceof BlobMissing || error instanceof BlobDamaged

/** Full jitter: those that failed together do not come again together. */
function pauseBefore(attempt: number, { waitMs = 0 }: S3Fault, { firstPauseMs, longestPauseMs }: Patience): number {
  const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** (attempt - 1))
  return Math.max(Math.random() * longest, Math.min(waitMs, longestPauseMs))
}

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }

function createClient(address: S3Address, { connectMs }: Patience): S3Client {
  const { endpoint, region, keys, traits } = address
  const agent = { keepAlive: true, maxSockets: REQUESTS_AT_ONCE }
  return new S3Client({
    region,
    // Always said: the client would look for it in the environment and in files.
    endpoint: endpoint ?? `https://${hostOf(address)}`,
    forcePathStyle: traits.addressing === 'path',
    useFipsEndpoint: false,
    useDualstackEndpoint: false,
    credentials: {
      accessKeyId: keys.accessKeyId,
      secretAccessKey: keys.secretAccessKey,
      ...(keys.sessionToken ? { sessionToken: keys.sessionToken } : {}),
    },
    // Done here, where it is known what may be sent again.
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
    requestHandler: { connectionTimeout: connectMs, httpAgent: agent, httpsAgent: agent, logger: silent },
    logger: silent,
  })
}

/** Not by the sockets of the client: whoever waits for one would seem to stall. */
function createSlots(count: number) {
  let free = count
  const waiting: (() => void)[] = []
  return async function inSlot<T>(work: () => Promise<T>): Promise<T> {
    if (free > 0) free--
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }
}

/** For headers that a command has no input for. They are signed with the others. */
export function withHeaders<C extends HasStack>(command: C, headers: Readonly<Record<string, string>>): C {
  command.middlewareStack.add(
    (next: (args: never) => Promise<never>) => (args: { request: unknown }) => {
      Object.assign((args.request as { headers: Record<string, string> }).headers, headers)
      return next(args as never)
    },
    { step: 'build', name: 'gamekeeperHeaders' },
  )
  return command
}

/**
 * The answer of the command is read into memory, where it is a plain one: its body is empty then, and how many bytes have
 * come is what the function says.
 */
export function withDirect<C extends HasStack>(
  command: C,
  { direct }: Requests,
  into: Uint8Array,
  attempt: Attempt,
): () => number | undefined {
  let length: number | undefined
  command.middlewareStack.add(
    (next: (args: never) => Promise<never>) => async (args: { request: unknown }) => {
      const answer = await direct.get(args.request as SignedRequest, into, attempt)
      if (!answer) return await next(args as never)
      length = answer.length
      return { response: { statusCode: answer.statusCode, headers: answer.headers, body: Readable.from([]) } }
    },
    { step: 'deserialize', priority: 'low', name: 'gamekeeperDirect' },
  )
  return () => length
}

interface HasStack {
  middlewareStack: {
    // biome-ignore-start lint/suspicious/noExplicitAny: each command has types of its own for what passes through
    add(middleware: any, options: { step: 'build'; name: string }): void
    add(middleware: any, options: { step: 'deserialize'; priority: 'low'; name: string }): void
    // biome-ignore-end lint/suspicious/noExplicitAny: as above
  }
}
