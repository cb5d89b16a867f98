// Sessions as the service has them, in front of a service for which the panel is not served yet: a cookie stands for a token,
// which is added to each request that is passed on. For development and tests only.
import { randomBytes } from 'node:crypto'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'

const COOKIE = 'gamekeeper_session'
const API = '/v1/game'

export function createSessionShim(target: string, presetToken: string | null) {
  const tokens = new Map<string, string>()

  const tokenOf = (incoming: IncomingMessage): string | null => {
    const [, id = ''] = new RegExp(`${COOKIE}=([0-9a-f]+)`).exec(incoming.headers.cookie ?? '') ?? []
    return tokens.get(id) ?? presetToken
  }

  async function changeSession(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    if (incoming.method === 'DELETE') {
      answer.setHeader('set-cookie', `${COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`)
      return void answer.writeHead(204).end()
    }
    const body = JSON.parse(await textOf(incoming)) as { token?: string }
    const check = await fetch(`${target}${API}/token`, { headers: { authorization: `Bearer ${body.token}` } })
    if (!check.ok || !body.token) {
      answer.writeHead(check.status, { 'content-type': 'application/problem+json' }).end(await check.text())
      return
    }
    const id = randomBytes(16).toString('hex')
    tokens.set(id, body.token)
    answer.setHeader('set-cookie', `${COOKIE}=${id}; HttpOnly; SameSite=Strict; Path=/`)
    answer.writeHead(204).end()
  }

  function passOn(incoming: IncomingMessage, answer: ServerResponse): void {
    const token = tokenOf(incoming)
    const { cookie: _, ...headers } = incoming.headers
    const forwarded = request(
      `${target}${incoming.url}`,
      { method: incoming.method, headers: { ...headers, ...(token ? { authorization: `Bearer ${token}` } : {}) } },
      (response) => {
        answer.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(answer)
        answer.on('close', () => response.destroy())
      },
    )
    forwarded.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()))
    incoming.pipe(forwarded)
  }

  /** Whether the request was one for the service. */
  return (incoming: IncomingMessage, answer: ServerResponse): boolean => {
    const path = incoming.url?.split('?')[0] ?? ''
    if (path === `${API}/session` && incoming.method !== 'GET') {
      changeSession(incoming, answer).catch(() => answer.destroy())
      return true
    }
    if (!path.startsWith(`${API}/`) && path !== '/readyz') return false
    passOn(incoming, answer)
    return true
  }
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of incoming) text += chunk
  return text
}
