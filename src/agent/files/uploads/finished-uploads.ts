// Records of finished uploads, read only by a sender that missed the answer. They do not count in any quota, and a
// sender may finish thousands in a minute, so their number is limited.
import { FINISHED_UPLOADS_KEPT } from '../../../contract/fixed-limits.ts'
import type { Directory } from '../sandbox/directory.ts'
import { dropDone } from './partial-records.ts'

export interface FinishedUploads {
  /** The record of this one was written. The oldest go where there are too many. */
  add(folder: Directory, id: string): void
  /** One was found that a process before this one may have written. */
  found(folder: Directory, id: string): void
  drop(folder: Directory, id: string): void
}

/** Of one server. */
export function createFinishedUploads(): FinishedUploads {
  /** In the order in which they were finished. */
  const ours = new Set<string>()
  /** All of them are older than ours. Their own order is not known. */
  const earlier = new Set<string>()

  function drop(folder: Directory, id: string): void {
    dropDone(folder, id)
    ours.delete(id)
    earlier.delete(id)
  }

  function dropTooMany(folder: Directory): void {
    while (ours.size + earlier.size > FINISHED_UPLOADS_KEPT) {
      const [oldest] = earlier.size > 0 ? earlier : ours
      if (oldest === undefined) return
      drop(folder, oldest)
    }
  }

  return {
    add(folder, id) {
      ours.add(id)
      dropTooMany(folder)
    },
    found(folder, id) {
      if (ours.has(id)) return
      earlier.add(id)
      dropTooMany(folder)
    },
    drop,
  }
}
