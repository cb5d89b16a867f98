// One JSON request to a provider's API, with its failures told apart by status.
import { type CallOptions, DnsProviderError } from './provider.ts'

export interface HttpAnswer {
  status: number
  headers: Headers
  /** Undefined for an empty body or one that is not JSON. */
  body: unknown
}

export interface HttpRequest extends CallOptions {
  method: 'GET' | 'PATCH' | 'POST'
  url: string
  headers: Record<string, string>
  json?: unknown
}

/** Any answer is returned, whatever its status; no answer at all is `unreachable`. Redirects are not followed: they would carry the credential elsewhere. */
export async function requestJson(request: HttpRequest): Promise<HttpAnswer> {
  const { method, url, headers, json, signal } = request
  try {
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { accept: 'application/json', ...(json ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(json ? { body: JSON.stringify(json) } : {}),
      ...(signal ? { signal } : {}),
    })
    return { status: response.status, headers: response.headers, body: parse(await response.text()) }
  } catch (cause) {
    signal?.throwIfAborted()
    throw new DnsProviderError('unreachable', `The DNS provider at ${new URL(url).host} cannot be reached.`, { cause })
  }
}

/** Refused when it is configured, since a header that cannot be sent would be quoted in the error. */
export function checkCredential(name: string, value: string): string {
  if (!/^[\x21-\x7e]+$/.test(value)) throw new DnsProviderError('invalid', `The ${name} is empty or not plain ASCII.`)
  return value
}

/** Without a slash at the end. A name and password in it are refused: they would be quoted in errors. */
export function checkBaseUrl(value: string): string {
  const url = URL.parse(value)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    throw new DnsProviderError('invalid', 'The address of the DNS provider is not a plain http or https URL.')
  }
  return value.replace(/\/+$/, '')
}

/** The failures that mean the same with every API. */
export function faultOfStatus({ status, headers }: HttpAnswer): DnsProviderError {
  if (status === 401 || status === 403) {
    return new DnsProviderError('refused', `The DNS provider refused the credentials (status ${status}).`)
  }
  if (status === 429) {
    return new DnsProviderError('rate_limited', 'The DNS provider asks for fewer requests.', {
      retryAfterMs: retryAfterMs(headers),
    })
  }
  if (status >= 400 && status < 500) {
    return new DnsProviderError('invalid', `The DNS provider refused the change (status ${status}).`)
  }
  return new DnsProviderError('server_error', `The DNS provider failed (status ${status}).`)
}

const DEFAULT_RETRY_MS = 60_000

function retryAfterMs(headers: Headers): number {
  const value = headers.get('retry-after')
  if (value === null) return DEFAULT_RETRY_MS
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.max(ms, 0) : DEFAULT_RETRY_MS
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
