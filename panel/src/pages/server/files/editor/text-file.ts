import { client } from '../../../../api/client.ts'

export const TEXT_MAX_BYTES = 4 * 1024 * 1024

export interface TextFile {
  text: string
  etag: string | null
}

/** Null: it is no text, or too large to be edited in a page. */
export async function readTextFile(serverId: string, path: string, signal?: AbortSignal): Promise<TextFile | null> {
  const { bytes, sizeBytes, etag } = await client.files.read(serverId, path, signal ? { signal } : {})
  if (sizeBytes === null || sizeBytes > TEXT_MAX_BYTES) {
    await bytes.cancel()
    return null
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      await new Response(bytes).arrayBuffer(),
    )
    return text.includes('\0') ? null : { text, etag }
  } catch (error) {
    // What is no UTF-8 would come back changed.
    if (error instanceof TypeError) return null
    throw error
  }
}
