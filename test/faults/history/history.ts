// The history of a round: every request and its answer, every fault that was put in its way. It is on disk while it
// happens, one line of JSON each, so that it can be read whatever becomes of the round.
import { closeSync, openSync, writeSync } from 'node:fs'
import type { Keeper } from './keeper.ts'

/** `ok`: it happened. `refused`: nothing of it did. `unknown`: nobody heard the answer, so all of it did or nothing. */
export type Outcome = { op: string; requestId: string } & (
  | {
      kind: 'ok'
      status: number
      headers: Headers
      // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
      body: any
    }
  | { kind: 'refused'; status: number; code: string; detail: string }
  | { kind: 'unknown'; reason: string }
)

export interface Call {
  method: string
  /** Below `/v1/game`, or a whole address. */
  target: string
  json?: object
  bytes?: Uint8Array<ArrayBuffer>
  form?: FormData
  headers?: Record<string, string>
  /** Another token than the admin's. */
  token?: string
  signal?: AbortSignal
}

export interface History {
  readonly path: string
  /** The number of requests so far. */
  readonly length: number
  note(line: object): void
  send(call: Call): Promise<Outcome>
  close(): void
}

/** What an entry of the activity has as its user agent, so that every entry belongs to one request. */
export const AGENT_PREFIX = 'history/'

export function createHistory(
  path: string,
  keeper: () => Keeper,
  onOutcome: (call: Call, outcome: Outcome) => void,
): History {
  const fd = openSync(path, 'w')
  const startedAt = performance.now()
  let length = 0
  const note = (line: object) =>
    void writeSync(fd, `${JSON.stringify({ ms: Math.round(performance.now() - startedAt), ...line })}\n`)

  async function exchange(op: string, call: Call): Promise<Outcome> {
    const body = call.json ? JSON.stringify(call.json) : (call.form ?? call.bytes)
    try {
      const { url, token } = keeper()
      const response = await fetch(call.target.startsWith('http') ? call.target : `${url}/v1/game${call.target}`, {
        method: call.method,
        headers: {
          'user-agent': `${AGENT_PREFIX}${op}`,
          ...(call.target.startsWith('http') ? {} : { authorization: `Bearer ${call.token ?? token}` }),
          ...(call.json ? { 'content-type': 'application/json' } : {}),
          ...(call.bytes ? { 'content-type': 'application/octet-stream' } : {}),
          ...call.headers,
        },
        ...(body === undefined ? {} : { body }),
        ...(call.signal ? { signal: call.signal } : {}),
      })
      const bytes = Buffer.from(await response.arrayBuffer())
      return outcomeOf(op, response, bytes)
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string } }
      return { op, requestId: '', kind: 'unknown', reason: cause?.code ?? message }
    }
  }

  return {
    path,
    get length() {
      return length
    },
    note,
    async send(call) {
      const op = `op${++length}`
      note({ op, asks: `${call.method} ${shortened(call.target)}`, ...(call.json ? { body: call.json } : {}) })
      const outcome = await exchange(op, call)
      const { kind } = outcome
      const said = kind === 'ok' ? outcome.body : kind === 'refused' ? outcome.code : outcome.reason
      note({
        op,
        answer: kind,
        status: 'status' in outcome ? outcome.status : null,
        said: Buffer.isBuffer(said) ? null : said,
      })
      onOutcome(call, outcome)
      return outcome
    },
    close: () => closeSync(fd),
  }
}

function outcomeOf(op: string, response: Response, bytes: Buffer): Outcome {
  const { status, headers } = response
  const requestId = headers.get('x-request-id') ?? ''
  const isJson = /json/.test(headers.get('content-type') ?? '') && !/ndjson/.test(headers.get('content-type') ?? '')
  const body = isJson && bytes.length > 0 ? JSON.parse(bytes.toString()) : bytes
  if (response.ok || status === 304) return { op, requestId, kind: 'ok', status, headers, body }
  return { op, requestId, kind: 'refused', status, code: String(body.code ?? ''), detail: String(body.detail ?? '') }
}

/** Signed links are long, and say nothing to a reader. */
const shortened = (target: string) =>
  target.replace(/(uploads|downloads)\/[\w.-]{20,}/, '$1/…').replace(/^https?:\/\/[^/]+/, '')

/** For what must work: the setting up of a round, and what the checker reads. */
export function expectOk(outcome: Outcome): Extract<Outcome, { kind: 'ok' }> {
  if (outcome.kind === 'ok') return outcome
  throw new Error(`${outcome.op} was to succeed: ${JSON.stringify(outcome)}`)
}
