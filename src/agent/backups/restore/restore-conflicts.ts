// Whatever a step of a restore finds in its way is newer than the plan: somebody has written it since. It goes to its
// own batch of the trash, which is made durable and noted beside the journal before anything moves. Each direction
// brings back what the other has moved away, if its place is free, so that both can be chosen repeatedly.
import { isFailure } from '../../../contract/errors.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import { kindOf } from '../../files/reading/entries.ts'
import {
  createFileAt,
  type Directory,
  fsyncDirectory,
  fsyncFile,
  isSameFile,
  lstatAt,
  openForUpdateAt,
  renameAt,
  renameNewAt,
  statsIfThere,
  unlinkAt,
} from '../../files/sandbox/directory.ts'
import { formatPath } from '../../files/sandbox/paths.ts'
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import { slotName, type TrashBatch } from '../../files/trash/trash-records.ts'
import { NEWER_FILE, type NewerItem, newerItems } from '../../restore-state.ts'
import { isGone } from './restore-journal.ts'
import type { StagedPlace } from './restore-staged.ts'
import type { RestoreTarget } from './restore-target.ts'

/** How often a step is tried that finds something in its way again and again. */
export const WAY_ATTEMPTS = 10

export interface Way {
  /** Takes away what keeps the path from being filled, itself or a directory above it. */
  clear(path: string[], options: { allowsDirectory: boolean }): Promise<void>
  /** Moves what lies in staging to the trash as if it had been taken from the path. */
  discard(staged: StagedPlace, path: string[]): Promise<void>
  /** Brings back what the other direction has moved away, where its place is free. */
  giveBack(): Promise<void>
}

/** Whether it may help to clear the way. */
export function isInTheWay(error: unknown): boolean {
  return (
    hasCode(error, 'EEXIST', 'EISDIR', 'ENOTDIR', 'ENOTEMPTY') ||
    isFailure(error, 'already_exists') ||
    isFailure(error, 'invalid_path')
  )
}

export function createWay(
  target: Pick<RestoreTarget, 'sandbox' | 'prepareTrash' | 'gate'>,
  staging: Directory,
  openTrash: (batch: string) => Directory,
  by: NewerItem['by'],
): Way {
  const { sandbox, gate } = target

  async function prepare(path: string[], stats: ReturnType<typeof lstatAt>): Promise<TrashBatch> {
    using held = new DisposableStack()
    const batch = held.use(await target.prepareTrash([{ path: formatPath(path), kind: kindOf(stats) }]))
    gate.hold([batch.id])
    await note(staging, { by, path, batch: batch.id })
    held.move()
    return batch
  }

  async function moveAway(path: string[]): Promise<void> {
    using place = sandbox.openPlace(path)
    const stats = statsIfThere(place.parent, place.name)
    if (!stats) return
    using batch = await prepare(path, stats)
    try {
      renameAt(place.parent, place.name, batch.folder, slotName(0))
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
    await fsyncDirectory(batch.folder)
    await fsyncDirectory(place.parent)
  }

  return {
    async clear(path, { allowsDirectory }) {
      for (let depth = 1; depth <= path.length; depth++) {
        const stats = lstatIfThere(sandbox, path.slice(0, depth))
        if (!stats) return
        const isFine = stats.isDirectory() && (depth < path.length || allowsDirectory)
        if (!isFine) return await moveAway(path.slice(0, depth))
      }
    },
    async discard({ parent, name }, path) {
      using batch = await prepare(path, lstatAt(parent, name))
      renameAt(parent, name, batch.folder, slotName(0))
      await fsyncDirectory(batch.folder)
    },
    async giveBack() {
      for (const { by: mover, path, batch } of newerItems(staging.address).reverse())
        if (mover !== by) await putBackIfFree(sandbox, openTrash, batch, path)
    },
  }
}

/** Durable once it resolves. */
async function note(staging: Directory, item: NewerItem): Promise<void> {
  const isNew = statsIfThere(staging, NEWER_FILE) === undefined
  using file = isNew ? createFileAt(staging, NEWER_FILE, 0o600) : openForUpdateAt(staging, NEWER_FILE)
  // A line that was cut short before ends here.
  writeFully(file.fd, Buffer.from(`\n${JSON.stringify(item)}\n`), Number(file.stats.size))
  await fsyncFile(file)
  if (isNew) await fsyncDirectory(staging)
}

export function lstatIfThere(sandbox: Sandbox, path: string[]): ReturnType<Sandbox['lstatIfThere']> {
  try {
    return sandbox.lstatIfThere(path)
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

async function putBackIfFree(
  sandbox: Sandbox,
  openTrash: (batch: string) => Directory,
  batch: string,
  path: string[],
): Promise<void> {
  try {
    using folder = openTrash(batch)
    if (!statsIfThere(folder, slotName(0))) return
    using place = sandbox.openNewPlace(path, { anyName: true })
    moveFromSlot(folder, slotName(0), place.parent, place.name)
    await fsyncDirectory(place.parent)
  } catch (error) {
    // Its place is taken, or the trash has been emptied since.
    if (!isInTheWay(error) && !isGone(error)) throw error
  }
}

/** Never replaces anything: EEXIST where the name is taken. A crash may have left a file with both names. */
export function moveFromSlot(folder: Directory, slot: string, to: Directory, name: string): void {
  if (isSameFile(folder, slot, to, name)) unlinkAt(folder, slot)
  else renameNewAt(folder, slot, to, name)
}
