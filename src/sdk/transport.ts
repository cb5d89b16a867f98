// Sends requests, tells the ways of failing apart, and tries again where that is safe and may help.
import type { AnswerOf, Operation } from '../contract/operation.ts'
import type { Problem } from '../contract/schema.ts'
import { SESSION_PROOF_HEADER } from '../contract/sessions.ts'
import { backOffMs, LONGEST_RETRY_AFTER_MS, readRetryAfter, sleep } from './backoff.ts'
import { ApiError, changedWhileSent, TransportError } from './errors.ts'
import { type AnyArguments, type CallArguments, type CallOptions, type Prepared, prepare } from './request.ts'

export interface ClientOptions {
  /** Scheme, host and port of the service, such as `http://127.0.0.1:8080`. */
  baseUrl: string
  token?: string | null
  fetch?: typeof fetch
  /** For a page in a browser: the proof of its session, `proof` in the answer to `session.create`. Asked for each request. */
  sessionProof?: () => string | null
  /** What the activity of the service names as the source. */
  client?: 'sdk' | 'cli' | 'panel'
  /** How often a request is repeated after the first attempt. */
  retries?: number
  /** For one attempt; 60 seconds by default. */
  timeoutMs?: number
  /** Sent with every request. */
  headers?: Record<string, string>
}

export interface Transport {
  /** The answer of an operation, read and typed. */
  call<O extends Operation>(operation: O, args: CallArguments<O>): Promise<AnswerOf<O>>
  /** The answer as it comes, for what is streamed. Retried only until it begins. */
  open<O extends Operation>(
    operation: O,
    args: CallArguments<O>,
    options?: { accept?: string; retries?: number },
  ): Promise<Response>
  /** A path beside the API, such as `/readyz`. Any status is an answer; there are no retries. */
  probe(path: string, options?: CallOptions): Promise<Response>
  /** An address that the service gave out, such as a signed link: it needs no token and gets none. One attempt. */
  follow(url: string, request: LinkRequest): Promise<Response>
  /** A function that makes one operation's call from plain arguments, and says which operation it is. */
  method<O extends Operation, A extends unknown[]>(
    operation: O,
    toArguments: (...args: A) => CallArguments<O>,
  ): Method<O, A>
}

export interface LinkRequest {
  method: string
  headers?: Record<string, string>
  body?: BodyInit
  signal?: AbortSignal | undefined
  /** Until the answer has begun; that of the client by default. */
  timeoutMs?: number
}

export type Method<O extends Operation, A extends unknown[]> = ((...args: A) => Promise<AnswerOf<O>>) & {
  readonly operation: O
}

type Read<T> = (response: Response, attempt: number) => Promise<T>

interface Attempt {
  number: number
  signal: AbortSignal | undefined
  timeoutMs: number
}

const RETRIES = 3
const TIMEOUT_MS = 60_000
const RETRY_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504])

export function createTransport(options: ClientOptions): Transport {
  const { retries = RETRIES, timeoutMs = TIMEOUT_MS } = options
  // Called as a plain function: a browser's fetch refuses to be called as somebody's method.
  const send = options.fetch ?? ((input: RequestInfo | URL, init?: RequestInit) => fetch(input, init))
  const baseUrl = readBaseUrl(options.baseUrl)
  const fixedHeaders = {
    ...options.headers,
    ...(options.token ? { authorization: `Bearer ${options.token}` } : {}),
    'x-gamekeeper-client': options.client ?? 'sdk',
  }

  async function attemptOnce<T>(
    request: Prepared,
    { number, signal, timeoutMs: within }: Attempt,
    read: Read<T>,
  ): Promise<T> {
    const timeout = deadline(within)
    const signals = [signal, timeout.signal].filter((each) => each !== undefined)
    try {
      const response = await send(request.url, {
        method: request.method,
        headers: request.headers,
        body: request.body,
        // A redirect would turn a POST into a GET, whose answer looks like a success.
        redirect: request.method === 'GET' ? 'follow' : 'error',
        ...(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {}),
        ...(request.body instanceof ReadableStream ? { duplex: 'half' } : {}),
      } as RequestInit)
      return await read(response, number)
    } catch (error) {
      if (error instanceof ApiError || error instanceof TransportError) throw error
      signal?.throwIfAborted()
      if (timeout.signal?.aborted) {
        const message = `No answer within ${within / 1000} s from ${originOf(request.url)}.`
        throw new TransportError('timeout', message, { attempts: number })
      }
      if (causeOf(error).name === 'NotReadableError') throw changedWhileSent({ attempts: number, cause: error })
      throw new TransportError('network', `${originOf(request.url)} cannot be reached${reasonOf(error)}.`, {
        attempts: number,
        cause: error,
      })
    } finally {
      timeout.clear()
    }
  }

  async function attempt<T>(
    request: Prepared,
    { signal, timeoutMs: within = timeoutMs }: CallOptions,
    times: number,
    read: Read<T>,
  ): Promise<T> {
    for (let number = 1; ; number++) {
      try {
        return await attemptOnce(request, { number, signal, timeoutMs: within }, read)
      } catch (error) {
        const waitMs = request.repeatable && number <= times ? waitBefore(error, number) : null
        if (waitMs === null) throw error
        await sleep(waitMs, signal)
      }
    }
  }

  function headersNow(): Record<string, string> {
    const proof = options.sessionProof?.() ?? null
    return proof === null ? fixedHeaders : { ...fixedHeaders, [SESSION_PROOF_HEADER]: proof }
  }

  async function call<O extends Operation>(operation: O, args: CallArguments<O>): Promise<AnswerOf<O>> {
    const request = prepare(baseUrl, operation, args as AnyArguments, headersNow())
    const within = operation.rawBody ? { timeoutMs: 0 } : {}
    return (await attempt(request, { ...within, ...args }, retries, ifGood(readJson))) as AnswerOf<O>
  }

  return {
    call,
    open(operation, args, { accept, retries: times = retries } = {}) {
      const headers = { ...args.headers, ...(accept ? { accept } : {}) }
      const request = prepare(baseUrl, operation, { ...(args as AnyArguments), headers }, headersNow())
      return attempt(request, args, times, ifGood(asItComes))
    },
    probe(path, probeOptions = {}) {
      const request: Prepared = {
        url: baseUrl + path,
        method: 'GET',
        headers: { accept: 'application/json', 'x-gamekeeper-client': fixedHeaders['x-gamekeeper-client'] },
        body: null,
        repeatable: false,
      }
      return attemptOnce(request, { timeoutMs, number: 1, signal: undefined, ...probeOptions }, asItComes)
    },
    follow(url, { method, headers = {}, body = null, signal, timeoutMs: within = timeoutMs }) {
      const request: Prepared = { url, method, headers, body: body as BodyInit | null, repeatable: false }
      return attemptOnce(request, { number: 1, signal, timeoutMs: within }, ifGood(asItComes))
    },
    method: (operation, toArguments) =>
      Object.assign((...args: Parameters<typeof toArguments>) => call(operation, toArguments(...args)), { operation }),
  }
}

function readBaseUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
    throw new TypeError(`baseUrl must be an address such as http://127.0.0.1:8080, not ${JSON.stringify(text)}`)
  }
  return url.href.replace(/\/+$/, '')
}

function deadline(ms: number): { signal?: AbortSignal; clear(): void } {
  if (ms === 0) return { clear() {} }
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), ms)
  return { signal: controller.signal, clear: () => clearTimeout(timer) }
}

/** How long to wait before the next attempt; null when another would not help. */
export function waitBefore(error: unknown, attempt: number): number | null {
  if (error instanceof TransportError) {
    const worthIt = error.fault !== 'foreign_answer' || RETRY_STATUSES.has(error.status ?? 0)
    return worthIt ? backOffMs(attempt) : null
  }
  if (!(error instanceof ApiError) || !RETRY_STATUSES.has(error.status)) return null
  const asked = error.retryAfterMs ?? 0
  if (asked > LONGEST_RETRY_AFTER_MS) return null
  return asked + backOffMs(attempt)
}

const asItComes: Read<Response> = async (response) => response

const ifGood =
  <T>(read: Read<T>): Read<T> =>
  async (response, attempt) => {
    if (!response.ok) throw await refusal(response, attempt)
    return read(response, attempt)
  }

const readJson: Read<unknown> = async (response, attempt) => {
  const text = await response.text()
  if (text === '') return undefined
  const value = parse(text)
  if (value === undefined) throw foreignAnswer(response, attempt)
  return value
}

async function refusal(response: Response, attempts: number): Promise<Error> {
  const retryAfterMs = readRetryAfter(response.headers.get('retry-after'), Date.now())
  const problem = parse(await response.text())
  return isProblem(problem) ? new ApiError(problem, { attempts, retryAfterMs }) : foreignAnswer(response, attempts)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isProblem(value: unknown): value is Problem {
  const problem = value as Partial<Problem> | null | undefined
  return typeof problem?.code === 'string' && typeof problem.detail === 'string' && typeof problem.status === 'number'
}

function foreignAnswer(response: Response, attempts: number): TransportError {
  const who = originOf(response.url)
  const message = `${who} answered ${response.status}, but not as Gamekeeper does. Is the address right?`
  return new TransportError('foreign_answer', message, { status: response.status, attempts })
}

/** Never more than that: the rest of an address may be a signed link. */
const originOf = (url: string) => URL.parse(url)?.origin ?? 'The address'

/** Node puts the reason into the cause; browsers give none. */
const causeOf = (error: unknown) => (error as { cause?: { code?: unknown; name?: unknown } } | undefined)?.cause ?? {}

function reasonOf(error: unknown): string {
  const { code } = causeOf(error)
  return typeof code === 'string' ? ` (${code})` : ''
}
