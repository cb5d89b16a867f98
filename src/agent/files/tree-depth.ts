// How deep a tree is, by the kinds that directories list, without a look at every file.
import { opendirSync } from 'node:fs'
import { createTurns } from '../../kit/waiting/turns.ts'
import { isDirectoryEntry } from './reading/list.ts'
import { openDescent } from './sandbox/descent.ts'
import type { Directory } from './sandbox/directory.ts'
import { nameFromLatin1 } from './sandbox/names.ts'

/** Whether something in the directory has more than `most` names from there. */
export async function isDeeperThan(top: Directory, most: number, share: string): Promise<boolean> {
  using descent = openDescent(top)
  const turn = createTurns(share)
  const levels = [await look(top, turn)]
  for (let level = levels.at(-1); level; level = levels.at(-1)) {
    if (!level.isEmpty && descent.depth >= most) return true
    const name = level.directories.pop()
    if (name !== undefined) {
      if (descent.enter(name)) levels.push(await look(descent.current, turn))
    } else if (levels.length === 1) levels.pop()
    else levels.splice(-descent.leave())
  }
  return false
}

async function look(directory: Directory, turn: ReturnType<typeof createTurns>) {
  const directories: string[] = []
  let isEmpty = true
  using reader = opendirSync(directory.address, { encoding: 'latin1', bufferSize: 1024 })
  for (let entry = reader.readSync(); entry; entry = reader.readSync()) {
    if (turn.due()) await turn.take()
    isEmpty = false
    if (isDirectoryEntry(directory, entry)) directories.push(nameFromLatin1(entry.name))
  }
  return { directories, isEmpty }
}
