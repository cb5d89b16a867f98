// A request as any client might send it: fetch has rules of its own for bodies, methods and headers.
import { request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { holdAgainstContract } from './conformance.ts'
import type { Reply, TestService } from './service.ts'

export interface SendOptions {
  /** The admin's by default; null sends none. */
  token?: string | null
  headers?: Record<string, string>
  /** Sent as it is. */
  body?: string
}

const BESIDE_THE_CONTRACT = /^(?!\/v1\/game\/)|^\/v1\/game\/(?:uploads|downloads|backup-downloads)\//

/** `path` is an address of the service, or the whole of one that it gave out. */
export async function send(
  service: Pick<TestService, 'url' | 'adminToken'>,
  method: string,
  path: string,
  { token = service.adminToken, headers = {}, body }: SendOptions = {},
): Promise<Reply> {
  const reply = await exchange(new URL(path, service.url).href, method, body, {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  })
  const own = path.replace(service.url, '')
  if (!BESIDE_THE_CONTRACT.test(own)) await holdAgainstContract(service.url, method, own, reply)
  return reply
}

function exchange(url: string, method: string, body: string | undefined, headers: Record<string, string>) {
  return new Promise<Reply>((resolve, reject) => {
    const sent = httpRequest(url, { method, headers }, async (response) => {
      const answer = await text(response)
      const isJson = /json/.test(response.headers['content-type'] ?? '') && answer !== ''
      resolve({
        status: response.statusCode ?? 0,
        headers: new Headers(response.headers as Record<string, string>),
        text: answer,
        body: isJson ? JSON.parse(answer) : answer,
      })
    })
    sent.on('error', reject).end(body)
  })
}
