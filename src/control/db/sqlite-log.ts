// SQLite's write-ahead log, made durable beside the main thread. SQLite itself would sync within `commit`, and with it
// everybody would wait for a disk that is busy with somebody's archive (`npm run bench -- noisy`). So it runs with
// `synchronous = normal`, in which a commit writes to the log and does not sync it, and whoever has committed waits for a
// sync of the log before he is answered. Commits at the same time share one. SQLite still syncs by itself what its order
// depends on: the log before it is copied into the database, the database before the log begins anew.
import { constants, fdatasync } from 'node:fs'
import { promisify } from 'node:util'
import { type Descriptor, openDescriptor } from '../../kit/files/descriptor.ts'
import { createSharedSync } from '../../kit/files/shared-sync.ts'

const fdatasyncAsync = promisify(fdatasync)

export interface WriteAheadLog {
  /** What was committed before the call survives a power cut once this resolves. */
  sync(): Promise<void>
  close(): void
}

/**
 * `file` is the log of an open database in WAL mode, which keeps it until the database is closed. `copyToDatabase` makes
 * everything that is committed durable in another way, and throws where it cannot: what one sync has failed to write, the
 * next may say nothing about.
 */
export function openWriteAheadLog(
  file: string,
  copyToDatabase: () => void,
  syncFile: (log: Descriptor) => Promise<void> = (log) => log.use(fdatasyncAsync),
): WriteAheadLog {
  let log: Descriptor | undefined
  let failure: unknown

  async function syncOnce(): Promise<void> {
    if (failure === undefined)
      try {
        // The first commit makes it.
        log ??= openDescriptor(file, constants.O_RDONLY)
        return await syncFile(log)
      } catch (error) {
        failure = error
      }
    try {
      copyToDatabase()
    } catch {
      throw failure
    }
    failure = undefined
  }

  const { sync, whenEnded } = createSharedSync(syncOnce)
  return { sync, close: () => whenEnded(() => log?.[Symbol.dispose]()) }
}
