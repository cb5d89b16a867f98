// The four formats behind one door: writing a stream of entries, reading the entries of a file.
import { createReadStream, readSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { createGunzip, createGzip, createZstdCompress, createZstdDecompress } from 'node:zlib'
import type { ArchiveFormat } from '../../../contract/agent-files.ts'
import type { OpenFile } from '../directory.ts'
import { type ArchiveEntry, invalidArchive } from './entry.ts'
import { readTar } from './tar-read.ts'
import { writeTar } from './tar-write.ts'
import { readZip } from './zip-read.ts'
import { writeZip } from './zip-write.ts'

const CHUNK_BYTES = 256 * 1024

export const ARCHIVE_MIME: Record<ArchiveFormat, string> = {
  zip: 'application/zip',
  tar: 'application/x-tar',
  'tar.gz': 'application/gzip',
  'tar.zst': 'application/zstd',
}

/** Memory does not grow with what flows. Destroying the stream ends the entries, whose `finally` then runs. */
export function writeArchive(format: ArchiveFormat, entries: AsyncIterable<ArchiveEntry>): Readable {
  const plain = Readable.from(format === 'zip' ? writeZip(entries) : writeTar(entries), { objectMode: false })
  if (format === 'zip' || format === 'tar') return plain
  const packer = format === 'tar.gz' ? createGzip({ level: 4 }) : createZstdCompress()
  // The error reaches whoever reads the packer: pipeline destroys it with the same one.
  return pipeline(plain, packer, () => {})
}

export function readArchive(format: ArchiveFormat, file: OpenFile): AsyncGenerator<ArchiveEntry> {
  if (format === 'zip') return readZip(file)
  const raw = createReadStream('', { fd: file.fd, autoClose: false, start: 0, highWaterMark: CHUNK_BYTES })
  if (format === 'tar') return readTar(raw)
  return readTar(pipeline(raw, format === 'tar.gz' ? createGunzip() : createZstdDecompress(), () => {}))
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
