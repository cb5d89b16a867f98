// Where what is staged lies: under its number in staging, or under its own name in a staged folder. A folder stands for a
// directory that the restore makes, so that all that belongs into it gets to its place by one rename.
import { openIfStillThere } from '../../files/sandbox/descent.ts'
import { type Directory, statsIfThere } from '../../files/sandbox/directory.ts'
import type { KeyedEntry } from '../format/entries.ts'

/** What is to be built. */
export interface Staged {
  entry: KeyedEntry
  number: number
  /** In staging, for the directory that it belongs into. */
  folder: number | undefined
  /** The name that it is built under. */
  name: string
}

export interface StagedPlace {
  parent: Directory
  name: string
}

export interface StagedFolders extends Disposable {
  /** Undefined where it is not staged any more. Open until the next is asked for. */
  find(operation: { path: string[]; staged: number; folder?: number }): StagedPlace | undefined
}

export const stagedFolder = (folder: number) => `d${folder}`

/** For sections during which no folder is moved. What has come back from its place is under its number, wherever it was. */
export function openStagedFolders(staging: Directory): StagedFolders {
  let held: { folder: number; directory: Directory | undefined } | undefined

  function letGo(): void {
    held?.directory?.[Symbol.dispose]()
    held = undefined
  }

  function open(folder: number): Directory | undefined {
    if (held?.folder === folder) return held.directory
    letGo()
    held = { folder, directory: openIfStillThere(staging, stagedFolder(folder)) }
    return held.directory
  }

  return {
    find({ path, staged, folder }) {
      if (statsIfThere(staging, String(staged))) return { parent: staging, name: String(staged) }
      const parent = folder === undefined ? undefined : open(folder)
      const name = path.at(-1) ?? ''
      return parent && statsIfThere(parent, name) ? { parent, name } : undefined
    },
    [Symbol.dispose]: letGo,
  }
}
