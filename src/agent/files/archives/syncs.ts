// Many small files reach the disk together: they wait for it until there are some, and one commit of the journal does for all.
import type { Descriptor } from '../../../kit/descriptor.ts'
import { createWorkGroup } from '../../../kit/work-group.ts'
import { createShares } from '../../fair-shares.ts'
import { fsyncFile, type OpenFile } from '../sandbox/directory.ts'

const WAITING_MAX = 32
/** Of all servers together: the thread pool has four threads, and whoever saves one file waits for one of them too. */
const threads = createShares({ atOnce: 2, atOncePerServer: 2, waitingPerServer: Number.POSITIVE_INFINITY })

export interface Syncs extends AsyncDisposable {
  /** Takes the file over and closes it once it is on disk. */
  add(file: OpenFile): Promise<void>
  /** Resolves when all are on disk, or fails as the first of them that failed. */
  drain(): Promise<void>
}

/** `share`: whose files they are. */
export function createSyncs(share: string, signal: AbortSignal): Syncs {
  const syncs = createWorkGroup(WAITING_MAX)

  async function syncAndClose(taken: Descriptor): Promise<void> {
    using file = taken
    await threads.run(share, signal, () => fsyncFile(file))
  }

  return {
    async add(file) {
      syncs.check()
      syncs.start(syncAndClose(file.release()))
      await syncs.room()
    },
    drain: syncs.drain,
    [Symbol.asyncDispose]: syncs.ended,
  }
}
