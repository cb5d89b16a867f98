// One page of a directory. Names and kinds come from the directory itself; only what is on the page is looked at, and
// only a page is ever kept, so the first page of a directory of 100,000 costs little more than reading the directory.
import { type Dirent, lstatSync, opendirSync } from 'node:fs'
import type { FileEntry, ListPosition, ListRequest, ListSort } from '../../../contract/agent/agent-files.ts'
import { createTurns, type Turns } from '../../../kit/waiting/turns.ts'
import { addressOf, type Directory, statsIfThere } from '../sandbox/directory.ts'
import { nameFromLatin1, nameToBytes } from '../sandbox/names.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { describe } from './entries.ts'

export const MAX_PAGE = 1000
/** Read at once: less than a millisecond. */
const READ_AHEAD = 1024

/** A name as latin1, in which the order of characters is the order of bytes. */
interface Candidate {
  isDirectory: boolean
  key: bigint
  latin1: string
}

export async function list(
  files: Sandbox,
  request: Omit<ListRequest, 'serverId'>,
  turn = createTurns(files.share),
): Promise<{ entries: FileEntry[]; next: ListPosition | null }> {
  using directory = files.openDirectoryToRead(request.path)
  const limit = Math.min(Math.max(request.limit ?? 50, 1), MAX_PAGE)
  const compare = order(request.descending ?? false)
  const page = createPage(limit + 1, compare, request.after ? fromPosition(request.after) : undefined)
  await offerAll(directory, request.sort ?? 'name', turn, page.offer)
  const chosen = page.chosen.slice(0, limit)
  const last = page.chosen.length > limit ? chosen.at(-1) : undefined
  return { entries: chosen.flatMap((candidate) => entryOf(directory, candidate)), next: last ? toPosition(last) : null }
}

async function offerAll(
  directory: Directory,
  sort: ListSort,
  turn: Turns,
  offer: (candidate: Candidate) => void,
): Promise<void> {
  // Not readdir, which sorts all names before it gives any, and takes twice as long for that.
  using reader = opendirSync(directory.address, { encoding: 'latin1', bufferSize: READ_AHEAD })
  for (let entry = reader.readSync(); entry; entry = reader.readSync()) {
    if (turn.due()) await turn.take()
    const isDirectory = isDirectoryEntry(directory, entry)
    offer({ isDirectory, key: sort === 'name' ? 0n : keyOf(directory, entry.name, sort), latin1: entry.name })
  }
}

/** Some file systems do not say what an entry is. */
export function isDirectoryEntry(directory: Directory, entry: Dirent): boolean {
  if (entry.isDirectory()) return true
  if (entry.isFile() || entry.isSymbolicLink() || entry.isFIFO() || entry.isSocket()) return false
  return lstatSync(addressOf(directory, nameFromLatin1(entry.name)), { throwIfNoEntry: false })?.isDirectory() ?? false
}

function keyOf(directory: Directory, latin1: string, sort: ListSort): bigint {
  const stats = statsIfThere(directory, nameFromLatin1(latin1))
  if (!stats) return 0n
  if (sort === 'time') return stats.mtimeNs
  return stats.isFile() ? stats.size : 0n
}

/** Keeps the first `size` of what it is offered, in order, leaving out what is not after `after`. */
function createPage(size: number, compare: (a: Candidate, b: Candidate) => number, after: Candidate | undefined) {
  const chosen: Candidate[] = []
  function offer(candidate: Candidate): void {
    const worst = chosen.length === size ? chosen[size - 1] : undefined
    if (worst && compare(candidate, worst) >= 0) return
    if (after && compare(candidate, after) <= 0) return
    let low = 0
    for (let high = chosen.length; low < high; ) {
      const middle = (low + high) >> 1
      if (compare(chosen[middle] as Candidate, candidate) < 0) low = middle + 1
      else high = middle
    }
    chosen.splice(low, 0, candidate)
    if (chosen.length > size) chosen.pop()
  }
  return { chosen, offer }
}

/** Directories come first in either direction. */
function order(descending: boolean): (a: Candidate, b: Candidate) => number {
  const sign = descending ? -1 : 1
  return (a, b) => {
    if (a.isDirectory !== b.isDirectory) return a.isDirectory ? -1 : 1
    if (a.key !== b.key) return a.key < b.key ? -sign : sign
    if (a.latin1 === b.latin1) return 0
    return a.latin1 < b.latin1 ? -sign : sign
  }
}

function entryOf(directory: Directory, { latin1 }: Candidate): FileEntry[] {
  const name = nameFromLatin1(latin1)
  const stats = statsIfThere(directory, name)
  return stats ? [describe(directory, name, stats)] : []
}

function toPosition({ isDirectory, key, latin1 }: Candidate): ListPosition {
  return { isDirectory, key: String(key), name: nameFromLatin1(latin1) }
}

function fromPosition({ isDirectory, key, name }: ListPosition): Candidate {
  return { isDirectory, key: BigInt(key), latin1: nameToBytes(name).toString('latin1') }
}
