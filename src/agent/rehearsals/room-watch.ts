// The files of a rehearsal are in nobody's quota. So the disk is looked at while its game runs: one that fills it is ended
// while there is still room for everybody else.
import { statfs } from 'node:fs/promises'
import { fail } from '../../contract/errors.ts'
import { REHEARSAL_FREE_MIN_BYTES } from '../../contract/fixed-limits.ts'

const LOOK_EVERY_MS = 500

export interface RoomWatch extends Disposable {
  /** Aborted with `disk_full`. */
  signal: AbortSignal
}

export function watchRoom(folder: string, freeBytes = readFreeBytes): RoomWatch {
  const controller = new AbortController()
  const timer = setInterval(async () => {
    // What cannot be asked says nothing.
    const free = await freeBytes(folder).catch(() => Number.POSITIVE_INFINITY)
    if (free < REHEARSAL_FREE_MIN_BYTES)
      controller.abort(fail('disk_full', 'The game was filling the disk, so its rehearsal was ended.'))
  }, LOOK_EVERY_MS)
  timer.unref()
  return { signal: controller.signal, [Symbol.dispose]: () => clearInterval(timer) }
}

async function readFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
