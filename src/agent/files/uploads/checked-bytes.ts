// Chunks of an upload that come with a checksum: all of one is kept, or nothing.
import { createHash } from 'node:crypto'
import { ftruncateSync } from 'node:fs'
import { fail } from '../../../contract/errors.ts'
import { type Directory, type OpenFile, openForUpdateAt, statsIfThere } from '../sandbox/directory.ts'
import { mark, partName, unmark } from './partial-records.ts'
import { type ReceiveOptions, receiveBytes, type Space } from './receive.ts'

export interface Checksum {
  algorithm: string
  base64: string
}

/** After a crash: what was not checked by then is sent again. */
export function discardUnchecked(folder: Directory, id: string, offset: number): void {
  if (statsIfThere(folder, partName(id))) {
    using file = openForUpdateAt(folder, partName(id))
    if (Number(file.stats.size) > offset) ftruncateSync(file.fd, offset)
  }
  unmark(folder, id, offset)
}

/** All of it or nothing, also when the process dies. */
export async function receiveChecked(
  folder: Directory,
  id: string,
  file: OpenFile,
  source: AsyncIterable<Uint8Array>,
  space: Space,
  options: ReceiveOptions & { at: number },
): Promise<number> {
  mark(folder, id, options.at)
  try {
    return await receiveBytes(file, source, space, options)
  } catch (error) {
    ftruncateSync(file.fd, options.at)
    throw error
  } finally {
    unmark(folder, id, options.at)
  }
}

export async function* verifying(source: AsyncIterable<Uint8Array>, { algorithm, base64 }: Checksum) {
  const hash = createHash(algorithm)
  for await (const chunk of source) {
    hash.update(chunk)
    yield chunk
  }
  if (hash.digest('base64') !== base64) throw fail('checksum_mismatch', 'The bytes do not match their checksum.')
}
