// The directories into which a restore puts things. Neighbours in a journal are neighbours in the tree, so the directory of
// the last path is held open for the next.
import { hasCode } from '../../kit/errno.ts'
import { type Directory, usesDescriptors } from '../files/directory.ts'
import type { Sandbox } from '../files/sandbox.ts'

export interface Parents extends Disposable {
  /** Runs `work` in the directory that holds the path's last name. It is made where it is missing. */
  within<T>(path: string[], work: (parent: Directory, name: string) => T): T
  /** The next path is walked from the top again: whatever was moved or replaced meanwhile is seen. */
  letGo(): void
}

export function openParents(sandbox: Sandbox): Parents {
  let held: { path: string; parent: Directory } | undefined

  function letGo(): void {
    held?.parent[Symbol.dispose]()
    held = undefined
  }

  function afresh<T>(path: string[], parentPath: string, work: (parent: Directory, name: string) => T): T {
    letGo()
    const place = sandbox.openNewPlace(path, { anyName: true })
    if (usesDescriptors(place.parent)) {
      held = { path: parentPath, parent: place.parent }
      return work(place.parent, place.name)
    }
    using opened = place
    return work(opened.parent, opened.name)
  }

  return {
    within(path, work) {
      const parentPath = path.slice(0, -1).join('/')
      if (held?.path !== parentPath) return afresh(path, parentPath, work)
      try {
        return work(held.parent, path.at(-1) ?? '')
      } catch (error) {
        // In a directory that was removed while it was held, nothing can be made any more.
        if (!hasCode(error, 'ENOENT')) throw error
        return afresh(path, parentPath, work)
      }
    },
    letGo,
    [Symbol.dispose]: letGo,
  }
}
