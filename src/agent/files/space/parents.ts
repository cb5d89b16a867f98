// Quota for what is created besides the files themselves: their parent directories, and the records of what they
// replace.

import type { Segments } from '../sandbox/paths.ts'
import type { ServerFiles } from '../server-files.ts'
import type { TrashBatch, TrashRecord } from '../trash/trash-records.ts'
import { type Amount, BLOCK_BYTES, spaceOf } from './amounts.ts'

/** What a record has around a path, at most. */
const RECORD_ITEM_BYTES = 64

export interface RoomForParents extends Disposable {
  /** To be called where something was awaited since: more may be missing now. */
  renew(): Promise<void>
}

/**
 * For the directories above the path that are missing. Looked at again after every wait, so that all of them have room
 * when nothing is awaited between this and their making. Fails with `quota_exceeded` before anything is made.
 */
export async function roomForParents(server: ServerFiles, path: Segments): Promise<RoomForParents> {
  using rooms = new DisposableStack()
  let held = 0
  const renew = async (into: DisposableStack) => {
    for (;;) {
      const missing = path.length - 1 - server.files.reach(path.slice(0, -1)).depth
      if (missing <= held) return
      into.use(await server.usage.room(directories(missing - held)))
      held = missing
    }
  }
  await renew(rooms)
  const taken = rooms.move()
  return { renew: () => renew(taken), [Symbol.dispose]: () => taken.dispose() }
}

export const directories = (count: number): Amount => ({ bytes: count * BLOCK_BYTES, entries: count })

/** As `trash.prepare`, where the batch is for what makes way to something new, and is refused with it. */
export async function prepareReplaced(server: ServerFiles, items: TrashRecord['items']): Promise<TrashBatch> {
  const recordBytes = items.reduce((bytes, { path }) => bytes + Buffer.byteLength(path) + RECORD_ITEM_BYTES, 0)
  using _room = await server.usage.room({ bytes: BLOCK_BYTES + spaceOf(recordBytes), entries: 2 })
  return await server.trash.prepare('replaced', items)
}
