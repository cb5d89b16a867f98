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
  for (let failures = 0; ; ) {
    try {
      link ??= (await transport.call(requestUpload, { params: { serverId }, ...(signal ? { signal } : {}) })).url
      const query = new URLSearchParams({ directory, overwrite: String(overwrite) })
      if (options.skipIdentical || failures > 0) query.set('skipIdentical', 'true')
      const body = new FormData()
      for (const { name, blob } of files) body.append('files', blob, name)
      const response = await transport.follow(`${link}?${query}`, { method: 'POST', body, signal, timeoutMs: 0 })
      return ((await response.json()) as { data: FileEntry[] }).data
    } catch (error) {
      if (!overwrite) throw error
      await pauseAfter(error, ++failures, options)
      link = undefined
    }
  }
}
