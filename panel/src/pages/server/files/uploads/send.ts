import { isApiError } from '../../../../../../src/sdk/index.ts'
import { client } from '../../../../api/client.ts'
import { type KeptUpload, keepUploads } from './kept-uploads.ts'

/** In pieces, and after a break or a reload from where it was. */
export async function sendOne(
  kept: KeptUpload,
  signal: AbortSignal,
  onProgress: (bytesDone: number) => void,
): Promise<void> {
  const { serverId, directory, name, file, url } = kept
  const onCreated = (created: string) => {
    kept.url = created
    void keepUploads([kept])
  }
  const options = { directory, name, signal, onProgress, onCreated }
  try {
    await client.files.upload(serverId, file, url === null ? options : { ...options, resume: url })
  } catch (error) {
    // What had arrived is gone by now.
    if (url === null || !isApiError(error, 'not_found')) throw error
    await client.files.upload(serverId, file, options)
  }
}

/**
 * Small files for one folder, in one request: all of them arrive, or none. Nobody knows after a reload whether they had
 * arrived before, and browsers repeat requests by themselves: what is there already stays as it is.
 */
export async function sendTogether(uploads: readonly KeptUpload[], signal: AbortSignal): Promise<void> {
  const [first] = uploads
  if (!first) return
  // Read before they are sent: one that cannot be read is told from a connection that is lost.
  const blobs = await Promise.all(
    uploads.map(async ({ name, file }) => ({ name, blob: new Blob([await file.arrayBuffer()]) })),
  )
  await client.files.uploadMany(first.serverId, blobs, { directory: first.directory, signal, skipIdentical: true })
}

/** One of them may be at fault: each has to be asked for on its own. */
export const isFaultOfOne = (error: unknown) =>
  error instanceof DOMException ||
  isApiError(error, 'quota_exceeded', 'invalid_path', 'invalid_request', 'already_exists', 'too_large', 'disk_full')
