// Moving finished things into place: under a name that must be free, or in place of what is there, which then goes to
// the trash. All of it is synchronous, so that no other request of ours comes between.
import { fail } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import type { FreeNames } from '../free-names.ts'
import { type Directory, linkedAt, lstatAt, renameAt, renameNewAt, statsIfThere } from '../sandbox/directory.ts'
import { explain, explained } from '../sandbox/errors.ts'
import { childPath } from '../sandbox/paths.ts'
import { slotName, type TrashBatch } from '../trash/trash-records.ts'

/** Of names that were free when they were looked at. */
const MAX_TRIES = 100
const LOOKED_AT_FIRST = 8
/** A name has at most nine digits. */
const MAX_INDEX = 2 ** 28

export interface Source {
  folder: Directory
  name: string
}

/** Takes a name that nothing has: the first of them, where those that are taken have no gaps. */
export function moveToFreeName(source: Source, to: Directory, names: FreeNames): { name: string; path: string } {
  const first = freeIndex((index) => statsIfThere(to, names(index)) !== undefined)
  for (let index = first; ; index++) {
    const name = names(index)
    try {
      renameNewAt(source.folder, source.name, to, name)
      return { name, path: childPath(to.path, name) }
    } catch (error) {
      // Another program was faster.
      const isTaken = hasCode(error, 'EEXIST', 'ENOTEMPTY')
      if (!isTaken || index - first >= MAX_TRIES) throw explain(error, childPath(to.path, name))
    }
  }
}

/** Few looks however many are taken: the first ones one by one, then by doubling, and back by halves. */
function freeIndex(isTaken: (index: number) => boolean): number {
  for (let index = 0; index < LOOKED_AT_FIRST; index++) if (!isTaken(index)) return index
  let taken = LOOKED_AT_FIRST - 1
  let free = 2 * LOOKED_AT_FIRST
  for (; isTaken(free); free *= 2) {
    if (free > MAX_INDEX) throw fail('already_exists', 'No free name was found.')
    taken = free
  }
  while (free - taken > 1) {
    const middle = Math.floor((taken + free) / 2)
    if (isTaken(middle)) taken = middle
    else free = middle
  }
  return free
}

export function moveToNewName(source: Source, to: Directory, name: string): void {
  explained(childPath(to.path, name), () => renameNewAt(source.folder, source.name, to, name))
}

/**
 * What has the name goes into the slot and the source takes its place. A file is never absent in between: its second
 * name, in the trash, is made first, and the rename replaces it.
 */
export function moveReplacing(source: Source, to: Directory, name: string, batch: TrashBatch, index: number): void {
  explained(childPath(to.path, name), () => {
    if (!keptByLink(source, to, name, batch, index)) renameAt(to, name, batch.folder, slotName(index))
    renameAt(source.folder, source.name, to, name)
  })
}

function keptByLink(source: Source, to: Directory, name: string, batch: TrashBatch, index: number): boolean {
  if (lstatAt(to, name).isDirectory() || lstatAt(source.folder, source.name).isDirectory()) return false
  return linkedAt(to, name, batch.folder, slotName(index))
}
