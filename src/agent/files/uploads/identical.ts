// Whether a file that has arrived is there already, byte for byte: what is sent again after a lost answer then changes
// nothing, whatever became of the first time.
import type { FileEntry } from '../../../contract/agent/agent-files.ts'
import type { Source } from '../changes/replace.ts'
import { describe } from '../reading/entries.ts'
import { type OpenFile, openFileAt, statsIfThere } from '../sandbox/directory.ts'
import type { Segments } from '../sandbox/paths.ts'
import type { ServerFiles } from '../server-files.ts'

const COMPARED_BYTES = 64 * 1024

/** The entry that is there; undefined where there is none, or another one. */
export async function findIdentical(
  { files }: ServerFiles,
  segments: Segments,
  staged: Source,
): Promise<FileEntry | undefined> {
  if (files.reach(segments).depth < segments.length) return undefined
  using place = files.openPlace(segments)
  const stats = statsIfThere(place.parent, place.name)
  if (!stats?.isFile()) return undefined
  using arrived = openFileAt(staged.folder, staged.name)
  if (stats.size !== arrived.stats.size) return undefined
  using present = openFileAt(place.parent, place.name)
  return (await hasSameBytes(arrived, present)) ? describe(place.parent, place.name, stats) : undefined
}

async function hasSameBytes(a: OpenFile, b: OpenFile): Promise<boolean> {
  // One more than it has, so that the end of a small file is seen at once.
  const length = Math.min(COMPARED_BYTES, Number(a.stats.size) + 1)
  const [fromA, fromB] = [Buffer.alloc(length), Buffer.alloc(length)]
  for (let at = 0; ; at += length) {
    const [bytesA, bytesB] = await Promise.all([readFully(a, fromA, at), readFully(b, fromB, at)])
    if (bytesA !== bytesB || fromA.compare(fromB, 0, bytesB, 0, bytesA) !== 0) return false
    if (bytesA < length) return true
  }
}

/** Fewer bytes than `into` has room for mean that the file ends there. */
async function readFully(file: OpenFile, into: Buffer, at: number): Promise<number> {
  for (let done = 0; ; ) {
    const bytes = done < into.length ? await file.read(into, done, into.length - done, at + done) : 0
    if (bytes === 0) return done
    done += bytes
  }
}
