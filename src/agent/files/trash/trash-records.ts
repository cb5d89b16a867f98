// A deletion is one folder in the trash: a record of what was where, written and synced before anything moves, and the
// things themselves under their numbers. An item is in the trash when its number is there. What leaves the trash to make
// room is moved into a folder of the same form first.
import { readFileSync } from 'node:fs'
import type { FileKind } from '../../../contract/agent/agent-files.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import {
  addressOf,
  createFileAt,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  lstatAt,
  mkdirAt,
  openChild,
  rmdirAt,
  statsIfThere,
  unlinkAt,
} from '../sandbox/directory.ts'
import { type Amount, diskBytes } from '../space/amounts.ts'

export const RECORD = 'record.json'
const BATCH = /^trs_[0-9a-z]{26}$/
/** Four digits, or more where a batch has more than 65,536 items. */
const ITEM = /^(trs_[0-9a-z]{26})([0-9a-f]{4,6})$/

export interface TrashRecord {
  version: 1
  reason: 'deleted' | 'replaced'
  deletedAt: number
  items: { path: string; kind: FileKind }[]
}

/** Of items on their way out of the trash for good, so that a crash in between cannot leave them unrecorded. */
export interface FreeingRecord extends Omit<TrashRecord, 'reason'> {
  /** What ran short: the quota of the server, or the disk that it shares with others. */
  reason: 'quota' | 'disk'
  /** Whose work needed the room. */
  requestedBy: string
}

/** The open folder of one deletion. */
export interface TrashBatch extends Disposable {
  readonly id: string
  readonly folder: Directory
}

export const isBatchName = (name: string) => BATCH.test(name)
export const slotName = (index: number) => index.toString(16).padStart(4, '0')
export const isSlotName = (name: string) => /^[0-9a-f]{4,6}$/.test(name)
export const itemId = (batch: string, index: number) => `${batch}${slotName(index)}`

export function parseItemId(id: string): { batch: string; slot: string; index: number } | undefined {
  const [, batch, slot] = ITEM.exec(id) ?? []
  return batch && slot ? { batch, slot, index: Number.parseInt(slot, 16) } : undefined
}

/**
 * Once this resolves the record is on disk, and things may be moved into the batch's slots. The batch is one of
 * `filling` from before it can be seen; the caller takes it out.
 */
export async function writeBatch(
  trash: Directory,
  id: string,
  record: TrashRecord | FreeingRecord,
  filling: Set<string>,
): Promise<TrashBatch> {
  filling.add(id)
  try {
    mkdirAt(trash, id, 0o700)
  } catch (error) {
    filling.delete(id)
    throw error
  }
  try {
    using held = new DisposableStack()
    const folder = held.use(openChild(trash, id))
    using file = createFileAt(folder, RECORD, 0o600)
    writeFully(file.fd, Buffer.from(JSON.stringify(record)))
    // At once, so that one commit of the disk's journal does for all.
    await Promise.all([fsyncFile(file), fsyncDirectory(folder), fsyncDirectory(trash)])
    held.move()
    return { id, folder, [Symbol.dispose]: () => folder[Symbol.dispose]() }
  } catch (error) {
    dropUnfinished(trash, id)
    filling.delete(id)
    throw error
  }
}

/** Nothing was moved into it. Where this fails too, it goes when it expires. */
function dropUnfinished(trash: Directory, id: string): void {
  try {
    using folder = openChild(trash, id)
    dropRecord(folder)
    rmdirAt(trash, id)
  } catch {
    // The caller tells of what failed first.
  }
}

/** Undefined where it cannot be read: mostly it was never finished, and nothing was moved into the folder. */
export function readRecord<R extends TrashRecord | FreeingRecord = TrashRecord>(folder: Directory): R | undefined {
  try {
    const record = JSON.parse(readFileSync(addressOf(folder, RECORD), 'utf8')) as R | null
    return Array.isArray(record?.items) ? record : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT') || error instanceof SyntaxError) return undefined
    throw error
  }
}

export function dropRecord(folder: Directory): void {
  try {
    unlinkAt(folder, RECORD)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

/** What the batch takes without its items. */
export function sizeOfBatch(folder: Directory): Amount {
  const record = statsIfThere(folder, RECORD)
  const own = diskBytes(lstatAt(folder, '.'))
  return { bytes: own + (record ? diskBytes(record) : 0), entries: record ? 2 : 1 }
}
