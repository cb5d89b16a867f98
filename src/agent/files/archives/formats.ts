// The four formats behind one door: writing a stream of entries, reading the entries of a file.
import { readSync } from 'node:fs'
import { pipeline, Readable, type Transform } from 'node:stream'
import { createGunzip, createGzip, createZstdCompress, createZstdDecompress } from 'node:zlib'
import type { ArchiveFormat } from '../../../contract/agent/agent-files.ts'
import type { OpenFile } from '../sandbox/directory.ts'
import { type ArchiveEntry, invalidArchive } from './entry.ts'
import { bytesOf, inflated, type ReadOptions } from './source.ts'
import { readTar } from './tar-read.ts'
import { writeTar } from './tar-write.ts'
import { readZip } from './zip-read.ts'
import { writeZip } from './zip-write.ts'

export const ARCHIVE_MIME: Record<ArchiveFormat, string> = {
  zip: 'application/zip',
  tar: 'application/x-tar',
  'tar.gz': 'application/gzip',
  'tar.zst': 'application/zstd',
}

/**
 * Memory does not grow with what flows. Destroying the stream ends the entries, whose `finally` then runs. Whoever calls this does so in
 * any case: a packer asks for the first entries before anybody asks it.
 */
export function writeArchive(format: ArchiveFormat, entries: AsyncIterable<ArchiveEntry>): Readable {
  const plain = Readable.from(format === 'zip' ? writeZip(entries) : writeTar(entries), { objectMode: false })
  if (format === 'zip' || format === 'tar') return plain
  const packer = format === 'tar.gz' ? createGzip({ level: 4 }) : createZstdCompress()
  // The error reaches whoever reads the packer: pipeline destroys it with the same one.
  return pipeline(plain, packer, () => {})
}

/** The file stays the caller's, and is not used any more once the entries have ended. */
export function readArchive(format: ArchiveFormat, file: OpenFile, options: ReadOptions): AsyncGenerator<ArchiveEntry> {
  if (format === 'zip') return readZip(file, options)
  const raw = bytesOf(file, 0, Number(file.stats.size), options)
  return readTar(inflated(raw, inflaterFor(format), options))
}

function inflaterFor(format: Exclude<ArchiveFormat, 'zip'>): Transform | undefined {
  if (format === 'tar') return undefined
  return format === 'tar.gz' ? createGunzip() : createZstdDecompress()
}

/** By what the file holds, not by what it is called. */
export function detectFormat(file: OpenFile): ArchiveFormat {
  const head = Buffer.alloc(262)
  const length = readSync(file.fd, head, 0, head.length, 0)
  if (head.toString('latin1', 0, 2) === 'PK') return 'zip'
  if (head.readUInt16BE(0) === 0x1f8b) return 'tar.gz'
  if (head.readUInt32BE(0) === 0x28b52ffd) return 'tar.zst'
  if (length === head.length && head.toString('latin1', 257, 262) === 'ustar') return 'tar'
  throw invalidArchive('The file is not a zip, tar, tar.gz or tar.zst archive.')
}
