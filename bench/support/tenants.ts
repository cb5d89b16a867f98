// A tenant of the service under test: a token for one server, and what it can call.
import { layout } from '../../src/agent/layout.ts'
import { BASE_PATH } from '../../src/contract/operation.ts'

export interface Tenant {
  url: string
  token: string
  serverId: string
  /** Where its game would write. */
  folder: string
  /** The status and the body, as text. */
  call(method: string, path: string, options?: CallOptions): Promise<{ status: number; text: string; headers: Headers }>
}

export interface CallOptions {
  /** Sent as JSON; bytes as they are. */
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

const SCOPES = ['servers:read', 'files:read', 'files:write', 'backups:read', 'backups:write', 'activity:read']

export async function mintTenant(
  admin: { url: string; token: string },
  dataDir: string,
  name: string,
): Promise<Tenant> {
  const asAdmin = callAs(admin.url, admin.token)
  const server = JSON.parse((await asAdmin('POST', '/servers', { body: { name, limits: { backups: 50 } } })).text)
  const body = { name, scopes: SCOPES, servers: [server.id] }
  const { token } = JSON.parse((await asAdmin('POST', '/tokens', { body })).text)
  return {
    url: admin.url,
    token,
    serverId: server.id,
    folder: layout(dataDir).server(server.id).files,
    call: callAs(admin.url, token),
  }
}

export function callAs(url: string, token: string): Tenant['call'] {
  return async (method, path, { body, headers = {}, signal } = {}) => {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array
    const response = await fetch(path.startsWith('http') ? path : `${url}${BASE_PATH}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? (body as BodyInit) : JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    })
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
}
