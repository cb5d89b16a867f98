import type { FileContent } from '../../../../../../src/sdk/index.ts'
import { client } from '../../../../api/client.ts'

export const TEXT_MAX_BYTES = 4 * 1024 * 1024

export interface TextFile {
  text: string
  etag: string | null
}

/** Null: it is no text, or too large to be edited in a page. */
export async function readTextFile(serverId: string, path: string, signal?: AbortSignal): Promise<TextFile | null> {
  const content = await client.files.read(serverId, path, signal ? { signal } : {})
  const text = await textOf(content)
  return text === null ? null : { text, etag: content.etag }
}

export async function textOf({ bytes, sizeBytes }: FileContent): Promise<string | null> {
  if (sizeBytes === null || sizeBytes > TEXT_MAX_BYTES) {
    await bytes.cancel()
    return null
  }
  try {
    const content = await new Response(bytes).arrayBuffer()
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
    return text.includes('\0') ? null : text
  } catch (error) {
    // What is no UTF-8 would come back changed.
    if (error instanceof TypeError) return null
    throw error
  }
}

/** Of the file as it is now, without its text. Of one that is not empty the first byte is asked for. */
export async function readEtag(serverId: string, path: string, isEmpty: boolean, signal: AbortSignal) {
  const headers = isEmpty ? {} : { headers: { range: 'bytes=0-0' } }
  const { bytes, etag } = await client.files.read(serverId, path, { signal, ...headers })
  await bytes.cancel()
  return etag
}
