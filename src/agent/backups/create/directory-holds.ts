// Directories that are used by their descriptors after a walk has left them: they stay open until nobody needs them any
// more, since a number that was closed could be another directory by then.
import type { Directory } from '../../files/sandbox/directory.ts'

export function createDirectoryHolds() {
  const held = new Map<Directory, { count: number; end(): void }>()

  function begin(directory: Directory) {
    const { promise, resolve } = Promise.withResolvers<void>()
    void directory.use(() => promise)
    const use = { count: 0, end: resolve }
    held.set(directory, use)
    return use
  }

  return {
    hold(directory: Directory): Disposable {
      const use = held.get(directory) ?? begin(directory)
      use.count++
      return {
        [Symbol.dispose]() {
          if (--use.count > 0) return
          held.delete(directory)
          use.end()
        },
      }
    },
  }
}
