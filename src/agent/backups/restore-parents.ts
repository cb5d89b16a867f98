// The directories into which a restore puts things. Neighbours in a journal are neighbours in the tree, so the directory of
// the last path is held open for the next.
import { hasCode } from '../../kit/errno.ts'
import { type Directory, usesDescriptors } from '../files/directory.ts'
import type { Sandbox } from '../files/sandbox.ts'

export interface Parents extends Disposable {
  /**
   * Runs `work` in the directory that holds the path's last name. Where it is not open yet, it is made if it is missing,
   * unless there is nothing to do any more.
   */
  within(path: string[], work: (parent: Directory, name: string) => void, isDone?: () => boolean): void
  /** The next path is walked from the top again: whatever was moved or replaced meanwhile is seen. */
  letGo(): void
}

export function openParents(sandbox: Sandbox): Parents {
  let held: { path: string; parent: Directory } | undefined

  function letGo(): void {
    held?.parent[Symbol.dispose]()
    held = undefined
  }

  function afresh(path: string[], parentPath: string, work: (parent: Directory, name: string) => void): void {
    letGo()
    const place = sandbox.openNewPlace(path, { anyName: true })
    if (usesDescriptors(place.parent)) {
      held = { path: parentPath, parent: place.parent }
      work(place.parent, place.name)
      return
    }
    using opened = place
    work(opened.parent, opened.name)
  }

  return {
    within(path, work, isDone = () => false) {
      const parentPath = path.slice(0, -1).join('/')
      try {
        if (held?.path === parentPath) {
          work(held.parent, path.at(-1) ?? '')
          return
        }
      } catch (error) {
        // In a directory that was removed while it was held, nothing can be made any more.
        if (!hasCode(error, 'ENOENT')) throw error
      }
      if (!isDone()) afresh(path, parentPath, work)
    },
    letGo,
    [Symbol.dispose]: letGo,
  }
}
