// Small files that wait to be built, by the folder that they belong into. A directory takes one new file at a time, and a
// thread that waits for it burns its processor: so threads are given files of different folders, as long as there are some
// (`npm run bench -- backups`, `small`).
import type { Staged } from './restore-staged.ts'

type Folder = Staged['folder']

export interface StagedQueue {
  readonly length: number
  /** Of those, how many belong into folders of which nothing is being built. */
  readonly free: number
  add(staged: Staged): void
  /** So many at most, to be given to `built` once they are. Of folders in use only where there is nothing else. */
  take(count: number): Staged[]
  built(taken: readonly Staged[]): void
}

interface Waiting {
  files: Staged[]
  /** How many that were taken together have some of it. */
  users: number
}

export function createStagedQueue(): StagedQueue {
  const folders = new Map<Folder, Waiting>()
  let length = 0
  let free = 0

  function waitingIn(folder: Folder): Waiting {
    const waiting = folders.get(folder) ?? { files: [], users: 0 }
    folders.set(folder, waiting)
    return waiting
  }

  function takeFrom(waiting: Waiting, count: number): Staged[] {
    if (waiting.users++ === 0) free -= waiting.files.length
    const taken = waiting.files.splice(0, count)
    length -= taken.length
    return taken
  }

  function takeFree(count: number): Staged[] {
    const taken: Staged[] = []
    if (free === 0) return taken
    for (const waiting of folders.values()) {
      if (waiting.users > 0) continue
      taken.push(...takeFrom(waiting, count - taken.length))
      if (taken.length === count || free === 0) break
    }
    return taken
  }

  function takeAny(count: number): Staged[] {
    for (const waiting of folders.values()) if (waiting.files.length > 0) return takeFrom(waiting, count)
    return []
  }

  return {
    get length() {
      return length
    },
    get free() {
      return free
    },
    add(staged) {
      const waiting = waitingIn(staged.folder)
      waiting.files.push(staged)
      length++
      if (waiting.users === 0) free++
    },
    take(count) {
      const taken = takeFree(count)
      return taken.length > 0 ? taken : takeAny(count)
    },
    built(taken) {
      for (const folder of new Set(taken.map((staged) => staged.folder))) {
        const waiting = waitingIn(folder)
        if (--waiting.users > 0) continue
        free += waiting.files.length
        if (waiting.files.length === 0) folders.delete(folder)
      }
    },
  }
}
