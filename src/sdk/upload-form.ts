// Many small files in one request, which is one entry in the activity: all of them arrive, or none.
import { type FileEntry, requestUpload } from '../contract/files/files.ts'
import { pauseAfter } from './retry.ts'
import type { Transport } from './transport.ts'

export interface NamedBlob {
  /** Relative to the directory; may hold slashes. */
  name: string
  blob: Blob
}

export interface FormOptions {
  directory?: string
  /** False refuses to replace anything; then a break is an error, since nobody knows whether all was done before it. */
  overwrite?: boolean
  /** Leaves a file as it is that is there already with the same bytes. What is sent again after a break does so anyway. */
  skipIdentical?: boolean
  signal?: AbortSignal
  link?: string
  retries?: number
}

export async function uploadForm(
  transport: Transport,
  serverId: string,
  files: readonly NamedBlob[],
  options: FormOptions,
): Promise<FileEntry[]> {
  const { signal, directory = '/', overwrite = true } = options
  let { link } = options
  const boundary = `gamekeeper-${crypto.getRandomValues(new Uint32Array(4)).join('-')}`
  const body = formOf(files, boundary)
  for (let failures = 0; ; ) {
    try {
      link ??= (await transport.call(requestUpload, { params: { serverId }, ...(signal ? { signal } : {}) })).url
      const query = new URLSearchParams({ directory, overwrite: String(overwrite) })
      if (options.skipIdentical || failures > 0) query.set('skipIdentical', 'true')
      const response = await transport.follow(`${link}?${query}`, {
        method: 'POST',
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body,
        signal,
        timeoutMs: 0,
      })
      return ((await response.json()) as { data: FileEntry[] }).data
    } catch (error) {
      if (!overwrite) throw error
      await pauseAfter(error, ++failures, options)
      link = undefined
    }
  }
}

/**
 * The form as one Blob, which is read as it is sent. Node reads a `FormData` ahead, and an answer that comes before its
 * end, or a file that changes meanwhile, is a rejection there that nobody can handle.
 */
function formOf(files: readonly NamedBlob[], boundary: string): Blob {
  const parts = files.flatMap(({ name, blob }) => [
    `--${boundary}\r\nContent-Disposition: form-data; name="files"; filename*=UTF-8''${encoded(name)}\r\n`,
    `Content-Type: ${blob.type || 'application/octet-stream'}\r\n\r\n`,
    blob,
    '\r\n',
  ])
  return new Blob([...parts, `--${boundary}--\r\n`])
}

/** Every name arrives as it is. In `filename`, which browsers write, a `%22` means a quote. */
const encoded = (name: string) => encodeURIComponent(name.toWellFormed())
