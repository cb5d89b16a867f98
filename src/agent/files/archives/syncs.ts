// Many small files reach the disk together: their syncs run side by side, so that one commit of the journal does for all.
import { fsync } from 'node:fs'
import { promisify } from 'node:util'
import type { Descriptor } from '../../../kit/descriptor.ts'
import type { OpenFile } from '../sandbox/directory.ts'

const AT_ONCE = 32
const fsyncAsync = promisify(fsync)

export interface Syncs extends AsyncDisposable {
  /** Takes the file over and closes it once it is on disk. */
  add(file: OpenFile): Promise<void>
  /** Resolves when all are on disk, or fails as the first of them that failed. */
  drain(): Promise<void>
}

export function createSyncs(): Syncs {
  const running = new Set<Promise<void>>()
  let failure: { error: unknown } | undefined

  async function sync(taken: Descriptor): Promise<void> {
    using file = taken
    try {
      await file.use(fsyncAsync)
    } catch (error) {
      failure ??= { error }
    }
  }

  async function drain(): Promise<void> {
    await Promise.all(running)
    if (failure) throw failure.error
  }

  return {
    async add(file) {
      if (failure) throw failure.error
      const work = sync(file.release()).finally(() => running.delete(work))
      running.add(work)
      if (running.size >= AT_ONCE) await Promise.race(running)
    },
    drain,
    async [Symbol.asyncDispose]() {
      await Promise.all(running)
    },
  }
}
