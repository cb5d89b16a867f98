// One call to the API of a running service, whichever process it is.

export interface Reply {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting on it
  body: any
}

export interface CallOptions {
  /** null sends no token; the caller's own by default. */
  token?: string | null
  /** Sent as JSON; a string or a Buffer as it is. */
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** `path` is below `/v1/game`, or begins with `/v1/`. */
export async function sendCall(
  url: string,
  ownToken: string,
  method: string,
  path: string,
  { token = ownToken, body, headers = {}, signal }: CallOptions = {},
): Promise<Reply> {
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
  const response = await fetch(url + (path.startsWith('/v1/') ? path : `/v1/game${path}`), {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isRaw ? (body as BodyInit) : JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  })
  const text = await response.text()
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  return { status: response.status, headers: response.headers, text, body: isJson ? tryJson(text) : text }
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
