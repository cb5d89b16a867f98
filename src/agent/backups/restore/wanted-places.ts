// Where entries of a manifest belong. Most are in the same directory as the one before, whose path is taken apart once: of a
// file only its name is made from its key (`npm run bench -- backups`, `small`).
import { nameFromLatin1 } from '../../files/sandbox/names.ts'
import { checkName, pathOfOrderKey, segmentsOf } from '../format/entries.ts'

export interface WantedDirectory {
  path: string
  segments: string[]
}

export interface WantedPlace<D extends WantedDirectory> {
  directory: D
  name: string
}

/** `prepare` is called for each directory that differs from the one before. */
export function createWantedPlaces<D extends WantedDirectory>(
  prepare: (directory: WantedDirectory) => D,
): (key: string) => WantedPlace<D> {
  let last: { key: string; directory: D } | undefined

  function directoryOf(key: string): D {
    const path = pathOfOrderKey(key)
    return prepare({ path, segments: key === '' ? [] : segmentsOf(path) })
  }

  function enter(directoryKey: string): { key: string; directory: D } {
    last = { key: directoryKey, directory: directoryOf(directoryKey) }
    return last
  }

  return (key) => {
    const end = Math.max(0, key.lastIndexOf('\0'))
    const isInLast = last?.key.length === end && key.startsWith(last.key)
    const { directory } = last && isInLast ? last : enter(key.slice(0, end))
    const name = nameFromLatin1(key.slice(end === 0 ? 0 : end + 1))
    checkName(name)
    return { directory, name }
  }
}
