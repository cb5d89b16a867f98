// Looking through a trash that may hold any number of deletions, in turns of the event loop and a page at a time.
import { opendirSync } from 'node:fs'
import type { FileKind } from '../../../contract/agent/agent-files.ts'
import type { Turns } from '../../../kit/waiting/turns.ts'
import { type Directory, statsIfThere } from '../sandbox/directory.ts'
import { isBatchName, isSlotName, slotName, type TrashRecord } from './trash-records.ts'

/** Read at once: less than a millisecond. */
const READ_AHEAD = 1024

/** Those names in a trash that `isWanted`, in no order. All that are ours are ASCII. */
export async function* namesIn(
  trash: Directory,
  turn: Turns,
  isWanted: (name: string) => boolean,
): AsyncGenerator<string> {
  using reader = opendirSync(trash.address, { encoding: 'latin1', bufferSize: READ_AHEAD })
  for (let entry = reader.readSync(); entry; entry = reader.readSync()) {
    if (turn.due()) await turn.take()
    if (isWanted(entry.name)) yield entry.name
  }
}

/** In no order. */
export const batchNames = (trash: Directory, turn: Turns) => namesIn(trash, turn, isBatchName)

/** Newest first, and no more than `count` of those that `isWanted`. Ids sort by the time of the deletion. */
export async function newestBatches(
  trash: Directory,
  turn: Turns,
  count: number,
  isWanted: (batch: string) => boolean,
): Promise<string[]> {
  const newest: string[] = []
  for await (const batch of batchNames(trash, turn)) {
    const oldest = newest.length === count ? newest[count - 1] : undefined
    if ((oldest !== undefined && batch < oldest) || !isWanted(batch)) continue
    const at = newest.findLastIndex((other) => other > batch) + 1
    newest.splice(at, 0, batch)
    if (newest.length > count) newest.pop()
  }
  return newest
}

export interface PresentItem {
  index: number
  path: string
  kind: FileKind
}

/** Those items of a deletion that are in the trash, from an index on. */
export async function* presentItems(
  folder: Directory,
  { items }: Pick<TrashRecord, 'items'>,
  turn: Turns,
  from = 0,
): AsyncGenerator<PresentItem> {
  for (let index = from; index < items.length; index++) {
    if (turn.due()) await turn.take()
    const item = items[index]
    if (item && statsIfThere(folder, slotName(index))) yield { ...item, index }
  }
}

/** Whether anything of a deletion is still in the trash. */
export function hasItems(folder: Directory): boolean {
  using reader = opendirSync(folder.address, { encoding: 'latin1' })
  for (let entry = reader.readSync(); entry; entry = reader.readSync()) if (isSlotName(entry.name)) return true
  return false
}
