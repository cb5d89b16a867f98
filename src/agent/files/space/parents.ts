// Quota for what is created besides the files themselves: their parent directories, and the records of what they
// replace.
import { createTurns } from '../../../kit/waiting/turns.ts'
import { createPathTree } from '../sandbox/path-tree.ts'
import type { Segments } from '../sandbox/paths.ts'
import type { ServerFiles } from '../server-files.ts'
import type { TrashBatch, TrashRecord } from '../trash/trash-records.ts'
import { type Amount, BLOCK_BYTES, spaceOf } from './amounts.ts'
import type { Room } from './usage.ts'

/** What a record has around a path, at most. */
const RECORD_ITEM_BYTES = 64

export interface RoomForParents extends Disposable {
  /** To be called where something was awaited since: more may be missing on the way to this path now. */
  renew(path: Segments): Promise<void>
  /** To be called once there is something at the path: what was missing on the way to it is made, and counts by itself. */
  made(path: Segments): void
}

/**
 * For the directories above the paths that are missing, of all of them before the first is made. Looked at again after
 * every wait, so that all above one path have room when nothing is awaited between `renew` and their making. Fails with
 * `quota_exceeded` before anything is made. `clear` makes room for them and whatever else the caller puts in place, at once,
 * so that none is made for what is refused for want of the rest.
 */
export async function roomForParents(
  server: ServerFiles,
  paths: readonly Segments[],
  clear?: (parents: Amount) => Promise<void>,
): Promise<RoomForParents> {
  /** What is in the way of directories is refused where they are made: no room is taken for it. */
  const depthOf = (above: Segments) => {
    const { depth, stats } = server.files.reach(above)
    return stats?.isDirectory() === false ? above.length : depth
  }
  /** How many of those held are for each path: what two need is for the first of them. */
  const held = new Map<Segments, number>()
  const turn = createTurns(server.files.share)
  const tree = createPathTree()
  let missing = 0
  for (const path of paths) {
    if (turn.due()) await turn.take()
    const above = path.slice(0, -1)
    const depth = depthOf(above)
    if (depth === above.length) continue
    tree.add(above.slice(0, depth))
    const before = tree.size()
    tree.add(above)
    held.set(path, tree.size() - before)
    missing += tree.size() - before
  }
  await clear?.(directories(missing))
  const room = await server.usage.room(directories(missing))
  return {
    async renew(path) {
      for (;;) {
        const own = held.get(path) ?? 0
        const more = path.length - 1 - depthOf(path.slice(0, -1)) - own
        if (more <= 0) return
        await room.grow(directories(more))
        held.set(path, own + more)
      }
    },
    made(path) {
      room.shrink(directories(held.get(path) ?? 0))
      held.delete(path)
    },
    [Symbol.dispose]: () => room[Symbol.dispose](),
  }
}

export const directories = (count: number): Amount => ({ bytes: count * BLOCK_BYTES, entries: count })

/** For the records of what makes way. */
export function recordsOf(items: readonly { path: string }[]): Amount {
  const recordBytes = items.reduce((bytes, { path }) => bytes + Buffer.byteLength(path) + RECORD_ITEM_BYTES, 0)
  return { bytes: BLOCK_BYTES + spaceOf(recordBytes), entries: 2 }
}

/**
 * As `trash.prepare`, where the batch is for what makes way to something new, and is refused with it. `held` is room that
 * was taken for these records before.
 */
export async function prepareReplaced(
  server: ServerFiles,
  items: TrashRecord['items'],
  held?: Room,
): Promise<TrashBatch> {
  const records = recordsOf(items)
  using _room = held ? undefined : await server.usage.room(records)
  const batch = await server.trash.prepare('replaced', items)
  held?.shrink(records)
  return batch
}
