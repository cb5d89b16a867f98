// A blob from one store to another, whatever they are, in memory that does not grow with it.
import type { BlobInfo, BlobSource, BlobStore, BlobWriter, CopyOptions } from './store.ts'

const CHUNK_BYTES = 4 * 1024 * 1024

/**
 * Once it returns, `to` has the blob, durably. Throws `BlobMissing` where `from` does not have it, and an error where it has
 * less than `sizeBytes` of it. The same bytes once more are a success.
 */
export async function copyBlob(
  from: Pick<BlobStore, 'open'>,
  to: BlobStore,
  { name, sizeBytes }: Pick<BlobInfo, 'name' | 'sizeBytes'>,
  options: CopyOptions = {},
): Promise<void> {
  const reader = await from.open(name)
  try {
    const source: BlobSource = {
      sizeBytes,
      async read(range, into) {
        const bytes = await reader.get(range, into)
        if (bytes.length !== range.length) throw new Error(`${name} became shorter while it was copied`)
        return bytes
      },
    }
    if (to.copyIn) await to.copyIn(name, source, options)
    else await writeAll(await to.create(name), source, options)
  } finally {
    await reader.close()
  }
}

async function writeAll(writer: BlobWriter, source: BlobSource, { pace, signal }: CopyOptions): Promise<void> {
  try {
    for (let offset = 0; offset < source.sizeBytes; offset += CHUNK_BYTES) {
      const length = Math.min(CHUNK_BYTES, source.sizeBytes - offset)
      signal?.throwIfAborted()
      await pace?.(length)
      await writer.write(await source.read({ offset, length }))
    }
  } catch (error) {
    await writer.abort()
    throw error
  }
  await writer.commit()
}
