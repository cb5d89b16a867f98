// Small files that wait to be built, by the folder they go to. A directory takes one new file at a time, and a thread that
// waits for it spins: so what is built at the same time is of different folders, as long as there are some
// (`npm run bench -- backups`, `small`).
import type { Staged } from './restore-staged.ts'

type Folder = Staged['folder']

export interface StagedQueue {
  readonly length: number
  /** Of those, how many go to folders of which nothing is being built. */
  readonly free: number
  add(staged: Staged): void
  /** At most this many, to be given to `built` once they are. Of folders in use only where there are too few others. */
  take(count: number): Staged[]
  built(taken: readonly Staged[]): void
}

interface Waiting {
  files: Staged[]
  /** How often some of it was taken and has not been built. */
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

  function takeFree(taken: Staged[], count: number): void {
    for (const waiting of folders.values()) {
      if (taken.length === count || free === 0) return
      if (waiting.users === 0) taken.push(...takeFrom(waiting, count - taken.length))
    }
  }

  function takeAny(taken: Staged[], count: number): void {
    for (const waiting of folders.values()) {
      if (taken.length === count || length === 0) return
      if (waiting.files.length > 0) taken.push(...takeFrom(waiting, count - taken.length))
    }
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
      const taken: Staged[] = []
      takeFree(taken, count)
      takeAny(taken, count)
      return taken
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
