// What is written down beside a file that is still being uploaded, so that it goes on after a restart. In the staging
// folder `part-<id>` holds the bytes and `part-<id>.json` the record. While a chunk that has a checksum is being received
// `part-<id>.from-<offset>` marks where it began: what lies beyond was never checked, should the process die now.
// Once the file is in its place the record is `done-<id>.json`, which nobody reads but a sender that asks: there may be
// many of those, and a start does not look into them.
import { lutimesSync, opendirSync, readdirSync, readFileSync } from 'node:fs'
import type { FactCause } from '../../../contract/agent.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import {
  addressOf,
  createFileAt,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  renameAt,
  statsIfThere,
  unlinkAt,
} from '../sandbox/directory.ts'

const ID = /^upl_[0-9a-z]{26}$/
const NAME = /^part-(upl_[0-9a-z]{26})(?:\.json(\.new)?|\.from-(\d+))?$/
const DONE = /^done-(upl_[0-9a-z]{26})\.json$/
/** Names that are read at once: less than a millisecond. */
const READ_AHEAD = 1024

export interface PartialRecord {
  version: 1
  id: string
  /** The link that it was begun under. */
  uploadId: string
  cause: FactCause
  directory: string
  /** Where it is going. */
  path: string
  overwrite: boolean
  sizeBytes: number
  metadata: Record<string, string | null>
  /** Whether the file is in its place and the fact of it is written down. The name of the record says so too. */
  isFinished: boolean
}

/** What an upload has left, by the names of it alone. */
export interface FoundPartial {
  id: string
  /** Where its unchecked bytes begin, if it has any. */
  uncheckedFrom: number | undefined
}

export const isPartialId = (id: string) => ID.test(id)
export const partName = (id: string) => `part-${id}`
export const doneName = (id: string) => `done-${id}.json`
const recordName = (id: string) => `part-${id}.json`
const markName = (id: string, offset: number) => `part-${id}.from-${offset}`

/** Resolves once the record is on disk. */
export async function writeRecord(folder: Directory, record: PartialRecord): Promise<void> {
  const draft = `${recordName(record.id)}.new`
  dropIfThere(folder, draft)
  using file = createFileAt(folder, draft, 0o600)
  writeFully(file.fd, Buffer.from(JSON.stringify(record)))
  await fsyncFile(file)
  renameAt(folder, draft, folder, recordName(record.id))
  await fsyncDirectory(folder)
}

export function readRecord(folder: Directory, id: string): PartialRecord | undefined {
  const open = readIfThere(folder, recordName(id), id)
  if (open) return open
  const done = readIfThere(folder, doneName(id), id)
  return done && { ...done, isFinished: true }
}

/** A record that was damaged is none: its sender begins anew, and the other uploads go on. */
function readIfThere(folder: Directory, name: string, id: string): PartialRecord | undefined {
  try {
    const found = JSON.parse(readFileSync(addressOf(folder, name), 'utf8'))
    return isRecordOf(id, found) ? found : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EISDIR', 'ELOOP') || error instanceof SyntaxError) return undefined
    throw error
  }
}

function isRecordOf(id: string, found: Partial<PartialRecord> | null): found is PartialRecord {
  if (found?.version !== 1 || found.id !== id) return false
  const { uploadId, directory, path, sizeBytes, overwrite, isFinished, cause, metadata } = found
  return (
    [uploadId, directory, path].every((text) => typeof text === 'string') &&
    [overwrite, isFinished].every((flag) => typeof flag === 'boolean') &&
    [cause, metadata].every((part) => typeof part === 'object' && part !== null) &&
    Number.isSafeInteger(sizeBytes) &&
    Number(sizeBytes) >= 0
  )
}

/** When the last of an upload was written that has no record; 0 where only marks of it are left. */
export function leftAt(folder: Directory, id: string): number {
  const left = statsIfThere(folder, partName(id)) ?? statsIfThere(folder, recordName(id))
  return left ? Number(left.mtimeMs) : 0
}

/** Resolves once it is on disk that the upload is done. From now on its time counts. */
export async function markDone(folder: Directory, id: string): Promise<void> {
  const now = new Date()
  lutimesSync(addressOf(folder, recordName(id)), now, now)
  renameAt(folder, recordName(id), folder, doneName(id))
  await fsyncDirectory(folder)
}

/** The record goes first: bytes without a record belong to nobody. */
export function dropPartial(
  folder: Directory,
  { id, uncheckedFrom }: Pick<FoundPartial, 'id' | 'uncheckedFrom'>,
): void {
  const mark = uncheckedFrom === undefined ? [] : [markName(id, uncheckedFrom)]
  for (const name of [recordName(id), `${recordName(id)}.new`, partName(id), ...mark, doneName(id)])
    dropIfThere(folder, name)
}

export function dropDone(folder: Directory, id: string): void {
  dropIfThere(folder, doneName(id))
}

export function dropPart(folder: Directory, id: string): void {
  dropIfThere(folder, partName(id))
}

export function mark(folder: Directory, id: string, offset: number): void {
  dropIfThere(folder, markName(id, offset))
  createFileAt(folder, markName(id, offset))[Symbol.dispose]()
}

export function unmark(folder: Directory, id: string, offset: number): void {
  dropIfThere(folder, markName(id, offset))
}

/** Every upload that is not done. */
export function listPartials(folder: Directory): FoundPartial[] {
  const found = new Map<string, FoundPartial>()
  for (const name of readdirSync(folder.address, { encoding: 'latin1' })) {
    const [, id, , offset] = NAME.exec(name) ?? []
    if (id === undefined) continue
    const uncheckedFrom = offset === undefined ? found.get(id)?.uncheckedFrom : Number(offset)
    found.set(id, { id, uncheckedFrom })
  }
  return [...found.values()]
}

/** The ids of those that are done, in no order, however many there are. */
export function* doneIds(folder: Directory): Generator<string> {
  using reader = opendirSync(folder.address, { encoding: 'latin1', bufferSize: READ_AHEAD })
  for (let entry = reader.readSync(); entry; entry = reader.readSync()) {
    const [, id] = DONE.exec(entry.name) ?? []
    if (id !== undefined) yield id
  }
}

function dropIfThere(folder: Directory, name: string): void {
  try {
    unlinkAt(folder, name)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}
