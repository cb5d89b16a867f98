// The directories that a request has made on the way to something: what is refused after all takes away those of them
// that are empty.
import { hasCode } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { openDescent } from '../sandbox/descent.ts'
import { type Directory, rmdirAt, statsIfThere } from '../sandbox/directory.ts'
import { type Segments, splitPath } from '../sandbox/paths.ts'
import type { MadeDirectory } from '../sandbox/sandbox.ts'
import type { ServerFiles } from '../server-files.ts'
import { diskBytes } from '../space/amounts.ts'
import { inodeOf, thereOrNot } from './probes.ts'

export interface MadeParents {
  /** To be told of every directory that is made on the way to the path, the outermost first. */
  along(path: Segments): (made: MadeDirectory) => void
  /** Deepest first. One that holds something stays. */
  removeEmpty(): Promise<void>
}

interface Made {
  path: Segments
  /** How many names the one has that holds the outermost. */
  depth: number
  /** Of each, from the outermost on: another directory of the same name is not ours. */
  inodes: string[]
}

export function createMadeParents(server: ServerFiles): MadeParents {
  const all: Made[] = []
  return {
    along(path) {
      let made: Made | undefined
      return (directory) => {
        if (!made) {
          made = { path, depth: splitPath(directory.path).length - 1, inodes: [] }
          all.push(made)
        }
        made.inodes.push(inodeOf(directory.stats))
      }
    },
    async removeEmpty() {
      const turn = createTurns(server.files.share)
      for (const made of all.reverse()) {
        if (turn.due()) await turn.take()
        removeOf(server, made)
      }
    },
  }
}

function removeOf({ files, usage }: ServerFiles, { path, depth, inodes }: Made): void {
  using top = thereOrNot(() => files.openDirectory(path.slice(0, depth)))
  if (!top) return
  const names = path.slice(depth, depth + inodes.length)
  using descent = openDescent(top)
  for (const name of names.slice(0, -1)) if (!descent.enter(name)) break
  for (let index = descent.depth; index >= 0; index--) {
    const name = names[index] ?? ''
    const stats = statsIfThere(descent.current, name)
    if (stats && inodeOf(stats) === inodes[index]) {
      if (!isRemoved(descent.current, name)) return
      usage.changed({ bytes: -diskBytes(stats), entries: -1 })
    }
    if (index > 0 && descent.leave() !== 1) return
  }
}

function isRemoved(parent: Directory, name: string): boolean {
  try {
    rmdirAt(parent, name)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR', 'EBUSY')) return false
    throw error
  }
}
