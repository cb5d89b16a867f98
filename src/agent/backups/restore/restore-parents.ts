// The directories in which a restore puts things, or from which it takes them. Neighbours in a journal are neighbours in the
// tree, so the directory of the last path is held open for the next.
import { hasCode } from '../../../kit/files/errno.ts'
import { type Directory, usesDescriptors } from '../../files/sandbox/directory.ts'
import type { Place, Sandbox } from '../../files/sandbox/sandbox.ts'
import { isGone } from './restore-journal.ts'

type Work = (parent: Directory, name: string) => void

export interface Parents extends Disposable {
  /**
   * Runs `work` in the directory that holds the path's last name. Where it is not open yet, it is made if it is missing,
   * unless there is nothing to do any more.
   */
  within(path: string[], work: Work, isDone?: () => boolean): void
  /** The same, where nothing is to be done if the directory is gone. */
  withinIfThere(path: string[], work: Work): void
  /** The next path is walked from the top again: whatever was moved or replaced meanwhile is seen. */
  letGo(): void
}

export function openParents(sandbox: Sandbox): Parents {
  let held: { path: string; parent: Directory } | undefined

  function letGo(): void {
    held?.parent[Symbol.dispose]()
    held = undefined
  }

  function afresh(place: Place, parentPath: string, work: Work): void {
    if (usesDescriptors(place.parent)) {
      held = { path: parentPath, parent: place.parent }
      work(place.parent, place.name)
      return
    }
    using opened = place
    work(opened.parent, opened.name)
  }

  /** `open` answers nothing where there is nothing to do. */
  function inParent(path: string[], work: Work, open: () => Place | undefined): void {
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
    letGo()
    const place = open()
    if (place) afresh(place, parentPath, work)
  }

  return {
    within(path, work, isDone = () => false) {
      inParent(path, work, () => (isDone() ? undefined : sandbox.openNewPlace(path, { anyName: true })))
    },
    withinIfThere(path, work) {
      inParent(path, work, () => openIfThere(sandbox, path))
    },
    letGo,
    [Symbol.dispose]: letGo,
  }
}

export function openIfThere(sandbox: Sandbox, path: string[]): Place | undefined {
  try {
    return sandbox.openPlace(path)
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}
