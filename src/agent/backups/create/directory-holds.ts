// Directories that are used by their descriptors after a walk has left them: they stay open until nobody needs them any
// more, since a number that was closed could be another directory by then.
import type { Directory } from '../../files/sandbox/directory.ts'

export function createDirectoryHolds() {
  const held = new Map<Directory, { count: number } & Disposable>()

  function begin(directory: Directory) {
    const { promise, resolve } = Promise.withResolvers<void>()
    void directory.use(() => promise)
    const use = {
      count: 0,
      [Symbol.dispose]() {
        if (--use.count > 0) return
        held.delete(directory)
        resolve()
      },
    }
    held.set(directory, use)
    return use
  }

  return {
    /** One for all who hold it, and each lets go once: there are as many as files. */
    hold(directory: Directory): Disposable {
      const use = held.get(directory) ?? begin(directory)
      use.count++
      return use
    },
  }
}
