// Trees that are deeper than any path: made through descriptors, as a game makes them that changes its directory.
import { closeSync, constants, mkdirSync, openSync, writeFileSync } from 'node:fs'

/** `levels` directories, one in the other, with a file at the bottom. */
export function makeDeepTree(folder: string, levels: number, name = 'd'): void {
  let fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  for (let level = 0; level < levels; level++) {
    const next = `/proc/self/fd/${fd}/${name}`
    mkdirSync(next)
    const below = openSync(next, constants.O_RDONLY | constants.O_DIRECTORY)
    closeSync(fd)
    fd = below
  }
  writeFileSync(`/proc/self/fd/${fd}/bottom.txt`, Buffer.alloc(4096, 1))
  closeSync(fd)
}
