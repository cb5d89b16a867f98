// Many small files reach the disk together: their syncs run side by side, so that one commit of the journal does for all.
import type { Descriptor } from '../../../kit/descriptor.ts'
import { createWorkGroup } from '../../../kit/work-group.ts'
import { fsyncFile, type OpenFile } from '../sandbox/directory.ts'

const AT_ONCE = 32

export interface Syncs extends AsyncDisposable {
  /** Takes the file over and closes it once it is on disk. */
  add(file: OpenFile): Promise<void>
  /** Resolves when all are on disk, or fails as the first of them that failed. */
  drain(): Promise<void>
}

export function createSyncs(): Syncs {
  const syncs = createWorkGroup(AT_ONCE)
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

async function syncAndClose(taken: Descriptor): Promise<void> {
  using file = taken
  await fsyncFile(file)
}
