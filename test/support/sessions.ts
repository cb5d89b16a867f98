// A browser as far as sessions go: it keeps the cookie that it was given, and says where its page comes from.
import assert from 'node:assert/strict'
import { SESSION_PROOF_HEADER } from '../../src/contract/sessions.ts'
import type { CallOptions, Reply, TestService } from './service.ts'

export interface Browser {
  /** Its name and value. */
  cookie: string
  /** What its page has stored. */
  proof: string
  headers: Record<string, string>
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
}

/** Signs in as a page of the service does. */
export async function signIn(service: TestService, body: object): Promise<Browser> {
  const reply = await trySignIn(service, body)
  assert.equal(reply.status, 201, reply.text)
  return browserWith(service, cookieOf(reply), reply.body.proof)
}

export const trySignIn = (service: TestService, body: object, headers: Record<string, string> = {}): Promise<Reply> =>
  service.call('POST', '/session', { token: null, body, headers: { origin: service.url, ...headers } })

/** Its name and value. */
export const cookieOf = (reply: Reply): string => reply.headers.get('set-cookie')?.split(';')[0] ?? ''

export function browserWith(service: TestService, cookie: string, proof: string): Browser {
  const held = { cookie, [SESSION_PROOF_HEADER]: proof }
  return {
    cookie,
    proof,
    headers: held,
    call: (method, path, options = {}) =>
      service.call(method, path, {
        token: null,
        ...options,
        headers: {
          ...held,
          'x-gamekeeper-client': 'panel',
          ...(method === 'GET' ? {} : { origin: service.url }),
          ...options.headers,
        },
      }),
  }
}

/** The secret of a sign-in link or an invitation, as the panel reads it from the fragment of its address. */
export const secretIn = ({ url }: { url: string }): string => new URL(url).hash.split('=')[1] ?? ''
