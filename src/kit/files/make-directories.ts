import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * For a path that an operator has given. Node's own `recursive` loops for ever where a file system answers ENOENT although the
 * directory above is there, as /proc does: so each level is made by itself.
 */
export function makeDirectories(path: string, mode: number): void {
  const above = dirname(path)
  if (!existsSync(above)) makeDirectories(above, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
