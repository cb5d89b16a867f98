// A backup as one archive, straight from the blocks. The same backup in the same format yields the same bytes every
// time, so that a broken download can resume: in a tar by computing the position, in the other formats by generating
// the bytes before it again and discarding them.
import { Readable } from 'node:stream'
import type { ArchiveFormat } from '../../../contract/agent/agent-files.ts'
import { fail } from '../../../contract/errors.ts'
import type { ArchiveEntry } from '../../files/archives/entry.ts'
import { writeArchive } from '../../files/archives/formats.ts'
import { writeTar } from '../../files/archives/tar-write.ts'
import { type KeyedEntry, segmentsOf } from '../format/entries.ts'
import type { Manifest } from '../format/manifest.ts'
import type { Repository } from '../store/repository.ts'
import { type ContentReader, createContentReader, isSomeElsewhere } from './reader.ts'

const TAR_BLOCK = 512
const TAR_END = 2 * TAR_BLOCK

export interface Download {
  stream: Readable
  /** Known in advance for tar alone. */
  sizeBytes: number | null
}

export async function openDownload(
  repository: Repository,
  manifest: Manifest,
  format: ArchiveFormat,
  { share, start, signal }: { share: string; start: number; signal: AbortSignal },
): Promise<Download> {
  const reader = createContentReader(repository, share)
  try {
    const download = await begin(repository, manifest, format, { reader, start, signal })
    download.stream.once('close', () => reader[Symbol.dispose]())
    return download
  } catch (error) {
    reader[Symbol.dispose]()
    throw error
  }
}

async function begin(
  repository: Repository,
  manifest: Manifest,
  format: ArchiveFormat,
  { reader, start, signal }: { reader: ContentReader; start: number; signal: AbortSignal },
): Promise<Download> {
  if (isSomeElsewhere(repository))
    for await (const chunk of manifest.chunks()) for (const entry of chunk) reader.expect(entry)
  if (format !== 'tar') {
    const whole = writeArchive(format, archiveEntries(manifest, reader, signal))
    return { stream: start === 0 ? whole : restOf(whole, start, signal), sizeBytes: null }
  }
  const sizeBytes = await tarSize(manifest, reader, signal)
  if (start > sizeBytes) throw fail('range_not_satisfiable', 'The range begins after the end of the archive.')
  return { stream: Readable.from(tarFrom(manifest, reader, start, signal), { objectMode: false }), sizeBytes }
}

async function* archiveEntries(
  manifest: Manifest,
  reader: ContentReader,
  signal: AbortSignal,
): AsyncGenerator<ArchiveEntry> {
  await reader.reachFirst()
  for await (const chunk of manifest.chunks()) {
    for (const entry of chunk) {
      signal.throwIfAborted()
      yield archiveEntry(entry, reader, signal)
    }
  }
}

/** Further hard links are files of their own here: not every format knows them, and one that does needs the first. */
function archiveEntry(entry: KeyedEntry, reader: ContentReader, signal: AbortSignal): ArchiveEntry {
  return {
    path: segmentsOf(entry.path).join('/'),
    kind: entry.kind,
    mode: entry.mode,
    modifiedAt: new Date(Number(entry.mtimeNs / 1_000_000n)),
    sizeBytes: entry.sizeBytes,
    target: entry.target ?? '',
    content: () => untilAborted(reader.read(entry), signal),
  }
}

/** A compressor swallows gigabytes of zeros before it gives anything that could be found unwanted. */
async function* untilAborted(source: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const block of source) {
    signal.throwIfAborted()
    yield block
  }
}

const padded = (bytes: number) => Math.ceil(bytes / TAR_BLOCK) * TAR_BLOCK

async function tarHeader(entry: ArchiveEntry): Promise<Uint8Array> {
  const writer = writeTar(Readable.from([entry]))
  const first = await writer.next()
  await writer.return(undefined)
  return first.value
}

async function tarSize(manifest: Manifest, reader: ContentReader, signal: AbortSignal): Promise<number> {
  let total = TAR_END
  for await (const chunk of manifest.chunks()) {
    signal.throwIfAborted()
    for (const entry of chunk) {
      const header = await tarHeader(archiveEntry(entry, reader, signal))
      total += header.length + (entry.kind === 'file' ? padded(entry.sizeBytes) : 0)
    }
  }
  return total
}

async function* tarFrom(
  manifest: Manifest,
  reader: ContentReader,
  start: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  // Of a later start it is not needed: what was read before the break is not read again.
  if (start === 0) await reader.reachFirst()
  let at = 0
  /** What of the piece at `at` lies beyond the start. */
  const beyond = (piece: Uint8Array) => {
    const part = piece.subarray(Math.min(piece.length, Math.max(0, start - at)))
    at += piece.length
    return part
  }
  for await (const chunk of manifest.chunks()) {
    // Nothing is given before the start, so nobody who stops reading would be noticed.
    signal.throwIfAborted()
    for (const entry of chunk) {
      const header = beyond(await tarHeader(archiveEntry(entry, reader, signal)))
      if (header.length > 0) yield header
      if (entry.kind !== 'file') continue
      const skipped = Math.min(entry.sizeBytes, Math.max(0, start - at))
      at += skipped
      for await (const piece of reader.read(entry, skipped)) yield beyond(piece)
      const padding = beyond(Buffer.alloc(padded(entry.sizeBytes) - entry.sizeBytes))
      if (padding.length > 0) yield padding
    }
  }
  yield beyond(Buffer.alloc(TAR_END))
}

function restOf(whole: Readable, start: number, signal: AbortSignal): Readable {
  const rest = Readable.from(skip(whole, start, signal), { objectMode: false })
  // Where nobody has asked for a byte, `skip` has not begun and closes nothing.
  rest.once('close', () => whole.destroy())
  return rest
}

/** Nothing is given before the end of what is skipped, so that only the signal says whether anybody still waits for it. */
async function* skip(source: Readable, bytes: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  let left = bytes
  for await (const chunk of source as AsyncIterable<Uint8Array>) {
    signal.throwIfAborted()
    if (chunk.length > left) yield chunk.subarray(left)
    left = Math.max(0, left - chunk.length)
  }
}
