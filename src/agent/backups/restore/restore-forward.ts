// Carries a committed restore out. Must be idempotent, from any point at which an earlier run ended in either direction.
// Nothing is ever replaced: what is at a path that the plan fills has been written since, and goes to the trash first.
import { linkSync } from 'node:fs'
import { hasCode } from '../../../kit/files/errno.ts'
import {
  addressOf,
  type Directory,
  fsyncDirectory,
  isSameFile,
  mkdirAt,
  NO_LINKS,
  renameAt,
  renameNewAt,
  statsIfThere,
  unlinkAt,
} from '../../files/sandbox/directory.ts'
import { setAttributes } from './restore-attributes.ts'
import { isGone, type Operations, operationsOf, type Section, sectionsOf, unmarkTakenBack } from './restore-journal.ts'
import { openIfThere, openParents, type Parents } from './restore-parents.ts'
import { openStagedFolders, type StagedFolders, stagedFolder } from './restore-staged.ts'
import { eachStep, type Swap, slotOf } from './restore-steps.ts'
import { SYNCED_ONE_BY_ONE } from './restore-sync.ts'

type Steps = { [S in Section]: (operation: Operations[S]) => void } & {
  /** Whether every staged folder was moved in this very run: then there is nothing to do for what was in them. */
  areFoldersMoved(): boolean
}

interface Held {
  parents: Parents
  trash: ReturnType<typeof createHeldTrash>
  folders: StagedFolders
}

/** Answers the paths that must be synced, or undefined where they are so many that the whole file system should be. */
export async function rollForward(swap: Swap): Promise<string[][] | undefined> {
  const { staging, head, target, way } = swap
  await unmarkTakenBack(staging)
  const touched = new Map<string, string[]>()
  const touch = (path: string[]) => {
    if (touched.size <= SYNCED_ONE_BY_ONE) touched.set(path.join('/'), path)
  }
  using parents = openParents(target.sandbox)
  using trash = createHeldTrash(swap.openTrash)
  using folders = openStagedFolders(staging)
  const steps = stepsOf(swap, { parents, trash, folders })
  for (const section of sectionsOf(head)) {
    if (section === 'inside' && steps.areFoldersMoved()) continue
    if (section === 'meta') await way.giveBack()
    const step = steps[section] as (operation: Operations[Section]) => void
    const take = (operation: Operations[Section]) => {
      step(operation)
      touch(section === 'meta' ? operation.path : operation.path.slice(0, -1))
    }
    const { share } = swap.target.sandbox
    const options = { way, share, allowsDirectory: section === 'mkdir', refresh: parents.letGo }
    await eachStep<Operations[Section]>(operationsOf(staging, section), take, options)
  }
  if (touched.size > SYNCED_ONE_BY_ONE) return undefined
  for (const batch of head.trashBatches) {
    using folder = swap.openTrash(batch)
    await fsyncDirectory(folder)
  }
  return [...touched.values()]
}

function stepsOf({ staging, head, target: { sandbox } }: Swap, { parents, trash, folders }: Held): Steps {
  let areFoldersMoved = true
  return {
    areFoldersMoved: () => areFoldersMoved,
    displace({ path, item, inode }) {
      const { batch, slot } = slotOf(head, item)
      const folder = trash.open(batch)
      parents.withinIfThere(path, (parent, name) => {
        const there = statsIfThere(parent, name)
        if (!there || (inode !== undefined && String(there.ino) !== inode)) return
        const kept = statsIfThere(folder, slot)
        if (!kept) renameAt(parent, name, folder, slot)
        // A crash on the way back can leave it with both names.
        else if (kept.ino === there.ino) unlinkAt(parent, name)
      })
    },
    // A game that takes a directory away while this runs must not keep the rest from being put in place.
    mkdir({ path, folder }) {
      parents.within(path, (parent, name) => {
        if (folder !== undefined && isFolderMoved(staging, folder, parent, name)) return
        try {
          mkdirAt(parent, name, 0o700)
        } catch (error) {
          if (!hasCode(error, 'EEXIST') || !statsIfThere(parent, name)?.isDirectory()) throw error
        }
        if (folder !== undefined) areFoldersMoved = false
      })
    },
    place({ path, staged }) {
      // What is not in staging any more is in its place, whatever has become of that since.
      const isDone = () => statsIfThere(staging, String(staged)) === undefined
      try {
        parents.within(path, (parent, name) => placeNew(staging, String(staged), parent, name), isDone)
      } catch (error) {
        if (!isDone()) throw error
      }
    },
    inside({ path, staged, folder }) {
      const from = folders.find({ path, staged, folder })
      if (from) parents.within(path, (parent, name) => placeNew(from.parent, from.name, parent, name))
    },
    link({ path, to }) {
      using target = openIfThere(sandbox, to)
      if (!target) return
      const isDone = () => statsIfThere(target.parent, target.name) === undefined
      parents.within(path, (parent, name) => linkNew(target.parent, target.name, parent, name), isDone)
    },
    meta({ path, before: _, ...attributes }) {
      if (path.length === 0) {
        using top = sandbox.openDirectory([])
        setAttributes(`${top.address}/.`, attributes)
        return
      }
      try {
        parents.withinIfThere(path, (parent, name) => setAttributes(addressOf(parent, name), attributes))
      } catch (error) {
        if (!isGone(error)) throw error
      }
    },
  }
}

/** Items of one batch follow each other, so its folder is held open for the next. */
function createHeldTrash(openTrash: Swap['openTrash']) {
  let held: { batch: string; folder: Directory } | undefined
  const letGo = () => {
    held?.folder[Symbol.dispose]()
    held = undefined
  }
  return {
    open(batch: string): Directory {
      if (held?.batch === batch) return held.folder
      letGo()
      held = { batch, folder: openTrash(batch) }
      return held.folder
    },
    [Symbol.dispose]: letGo,
  }
}

/** Where nothing has the name. One that is not in staging has been moved before. */
function isFolderMoved(staging: Directory, folder: number, parent: Directory, name: string): boolean {
  try {
    renameNewAt(staging, stagedFolder(folder), parent, name)
    return true
  } catch (error) {
    if (!hasCode(error, 'EEXIST', 'ENOENT')) throw error
    return false
  }
}

/** A rename would replace what somebody has put there in this very instant; a link does not. */
function placeNew(staging: Directory, staged: string, parent: Directory, name: string): void {
  try {
    linkNew(staging, staged, parent, name)
  } catch (error) {
    if (!hasCode(error, ...NO_LINKS)) throw error
    if (statsIfThere(parent, name)) throw Object.assign(new Error('the name is taken'), { code: 'EEXIST' })
    renameAt(staging, staged, parent, name)
    return
  }
  unlinkAt(staging, staged)
}

function linkNew(from: Directory, fromName: string, parent: Directory, name: string): void {
  try {
    linkSync(addressOf(from, fromName), addressOf(parent, name))
  } catch (error) {
    if (!hasCode(error, 'EEXIST') || !isSameFile(from, fromName, parent, name)) throw error
  }
}
