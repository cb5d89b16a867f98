// Moving finished things into place: under a name that must be free, or in place of what is there, which then goes to
// the trash. All of it is synchronous, so that no other request of ours comes between.
import { fail } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/errno.ts'
import { type Directory, linkedAt, lstatAt, renameAt, renameNewAt } from '../sandbox/directory.ts'
import { explain, explained } from '../sandbox/errors.ts'
import { childPath } from '../sandbox/paths.ts'
import { slotName, type TrashBatch } from '../trash/trash-records.ts'

const MAX_TRIES = 100_000

export interface Source {
  folder: Directory
  name: string
}

/** Takes the first of the names that nothing has. */
export function moveToFreeName(source: Source, to: Directory, names: Iterable<string>): { name: string; path: string } {
  let tries = 0
  for (const name of names) {
    try {
      renameNewAt(source.folder, source.name, to, name)
      return { name, path: childPath(to.path, name) }
    } catch (error) {
      if (!hasCode(error, 'EEXIST', 'ENOTEMPTY') || ++tries > MAX_TRIES) throw explain(error, childPath(to.path, name))
    }
  }
  throw fail('already_exists', 'No free name was found.')
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
