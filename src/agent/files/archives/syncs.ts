// Many small files reach the disk together: they wait for it until there are some, and one commit of the disk's journal does
// for all. None is made meanwhile: that would wait for the commit too, and everybody with it, as it is done on the main thread.
import type { Descriptor } from '../../../kit/files/descriptor.ts'
import { giveWay, isAnythingUrgent } from '../../../kit/waiting/urgent.ts'
import { createWorkGroup } from '../../../kit/waiting/work-group.ts'
import { createShares } from '../../fair-shares.ts'
import { fsyncFile, type OpenFile } from '../sandbox/directory.ts'

const WAITING_MAX = 32
/** A larger file is written to the disk while the next is made: its bytes take longer than any commit. */
const SMALL_BYTES = 64 * 1024
/** Of all servers together: the thread pool has four threads, and whoever saves one file waits for one of them too. */
const threads = createShares({ atOnce: 2, atOncePerServer: 2, waitingPerServer: Number.POSITIVE_INFINITY })

export interface Syncs extends AsyncDisposable {
  /** Takes the file over and closes it once it is on disk. The next may be made once this resolves. */
  add(file: OpenFile, sizeBytes: number): Promise<void>
  /** Resolves when all are on disk, or fails as the first of them that failed. */
  drain(): Promise<void>
}

/** `share`: whose files they are. */
export function createSyncs(share: string, signal: AbortSignal): Syncs {
  const syncs = createWorkGroup(WAITING_MAX)
  const gathered: Descriptor[] = []

  async function syncAndClose(taken: Descriptor): Promise<void> {
    using file = taken
    await threads.run(share, signal, async () => {
      if (isAnythingUrgent()) await new Promise<void>(giveWay)
      await fsyncFile(file)
    })
  }

  function start(file: Descriptor): Promise<void> {
    const syncing = syncAndClose(file)
    syncs.start(syncing)
    return syncing
  }

  const startGathered = () => gathered.splice(0).map(start)

  return {
    async add(file, sizeBytes) {
      syncs.check()
      if (sizeBytes > SMALL_BYTES) {
        void start(file.release())
        await syncs.room()
        return
      }
      gathered.push(file.release())
      if (gathered.length === WAITING_MAX) await Promise.allSettled(startGathered())
    },
    async drain() {
      startGathered()
      await syncs.drain()
    },
    async [Symbol.asyncDispose]() {
      for (const file of gathered.splice(0)) file[Symbol.dispose]()
      await syncs.ended()
    },
  }
}
