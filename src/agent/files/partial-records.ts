// What is written down beside a file that is still being uploaded, so that it goes on after a restart. In the staging
// folder `part-<id>` holds the bytes and `part-<id>.json` the record. While a chunk that has a checksum is being received
// `part-<id>.from-<offset>` marks where it began: what lies beyond was never checked, should the process die now.
import { readdirSync, readFileSync, writeSync } from 'node:fs'
import type { FactCause } from '../../contract/agent.ts'
import { hasCode } from '../../kit/errno.ts'
import { addressOf, createFileAt, type Directory, fsyncDirectory, fsyncFile, renameAt, unlinkAt } from './directory.ts'

const ID = /^upl_[0-9a-z]{26}$/
const NAME = /^part-(upl_[0-9a-z]{26})(?:\.json(\.new)?|\.from-(\d+))?$/

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
  /** Whether the file is in its place and the fact of it is written down. */
  isFinished: boolean
}

export const isPartialId = (id: string) => ID.test(id)
export const partName = (id: string) => `part-${id}`
const recordName = (id: string) => `part-${id}.json`
const markName = (id: string, offset: number) => `part-${id}.from-${offset}`

/** Resolves once the record is on disk. */
export async function writeRecord(folder: Directory, record: PartialRecord): Promise<void> {
  const draft = `${recordName(record.id)}.new`
  dropIfThere(folder, draft)
  using file = createFileAt(folder, draft, 0o600)
  writeSync(file.fd, JSON.stringify(record))
  await fsyncFile(file)
  renameAt(folder, draft, folder, recordName(record.id))
  await fsyncDirectory(folder)
}

export function readRecord(folder: Directory, id: string): PartialRecord | undefined {
  try {
    return JSON.parse(readFileSync(addressOf(folder, recordName(id)), 'utf8')) as PartialRecord
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** The record goes first: bytes without a record belong to nobody. */
export function dropPartial(folder: Directory, id: string): void {
  dropIfThere(folder, recordName(id))
  for (const name of namesOf(folder)) if (NAME.exec(name)?.[1] === id) dropIfThere(folder, name)
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

/** Every upload that has left anything, and where its unchecked bytes begin, if it has any. */
export function listPartials(folder: Directory): Map<string, { uncheckedFrom: number | undefined }> {
  const found = new Map<string, { uncheckedFrom: number | undefined }>()
  for (const name of namesOf(folder)) {
    const [, id, , offset] = NAME.exec(name) ?? []
    if (id === undefined) continue
    const uncheckedFrom = offset === undefined ? found.get(id)?.uncheckedFrom : Number(offset)
    found.set(id, { uncheckedFrom })
  }
  return found
}

const namesOf = (folder: Directory) => readdirSync(folder.address, { encoding: 'latin1' })

function dropIfThere(folder: Directory, name: string): void {
  try {
    unlinkAt(folder, name)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}
