// What a client of tus sends, and the client that people use.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import * as tus from 'tus-js-client'
import type { TestAgent } from './agent.testing.ts'

export const MIB = 1024 * 1024
export const base64 = (text: string) => Buffer.from(text).toString('base64')
export const sha1 = (bytes: Uint8Array) => `sha1 ${createHash('sha1').update(bytes).digest('base64')}`

export async function call(
  url: string,
  method: string,
  headers: Record<string, string> = {},
  body?: Uint8Array<ArrayBuffer>,
) {
  const response = await fetch(url, {
    method,
    headers: { 'tus-resumable': '1.0.0', ...headers },
    ...(body ? { body } : {}),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, code: text ? JSON.parse(text).code : undefined }
}

export const create = (url: string, length: number, name = 'a.bin', more: Record<string, string> = {}) =>
  call(url, 'POST', { 'upload-length': String(length), 'upload-metadata': `filename ${base64(name)}`, ...more })

export async function begun(agent: TestAgent, length: number, name?: string) {
  const url = await agent.uploadUrl()
  const { status, headers } = await create(url, length, name)
  assert.equal(status, 201)
  return new URL(headers.get('location') ?? '', url).href
}

export const patch = (url: string, offset: number, body: Uint8Array<ArrayBuffer>, more: Record<string, string> = {}) =>
  call(
    url,
    'PATCH',
    { 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream', ...more },
    body,
  )

export const offsetOf = async (url: string) => Number((await call(url, 'HEAD')).headers.get('upload-offset'))

/** The client as people use it. Resolves with how it ended. */
export function upload(
  endpoint: string,
  content: Buffer,
  metadata: Record<string, string>,
  more: object = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    new tus.Upload(content as unknown as Blob, {
      endpoint,
      metadata,
      retryDelays: Array.from({ length: 200 }, () => 10),
      onSuccess: () => resolve(),
      onError: reject,
      ...more,
    }).start()
  })
}
