// Where things are built before they are moved into place by one rename: beside the server's files, on the same file
// system, out of the game's sight. Names that start with `tmp-` belong to nobody after a restart.
import { readdirSync } from 'node:fs'
import { newId } from '../../../kit/ids.ts'
import { type Directory, openOwnFolder } from './directory.ts'
import { nameFromLatin1 } from './names.ts'
import { removeTree } from './remove-tree.ts'
import { shareOf } from './sandbox.ts'

const TEMPORARY = 'tmp-'

export interface Staged extends AsyncDisposable {
  /** The staging folder itself. */
  readonly folder: Directory
  readonly name: string
}

export interface Staging {
  /** A name that nothing has yet. Whatever has it at the end of the block is taken away. */
  open(): Staged
  /** Takes away what was left by a process that died. */
  recover(): Promise<void>
}

export function createStaging(folderPath: string): Staging {
  const share = shareOf(folderPath)
  return {
    open() {
      const folder = openOwnFolder(folderPath)
      const name = `${TEMPORARY}${newId('upl')}`
      return {
        folder,
        name,
        async [Symbol.asyncDispose]() {
          using opened = folder
          await removeTree(opened, name, { share })
        },
      }
    },
    async recover() {
      using folder = openOwnFolder(folderPath)
      for (const name of readdirSync(folder.address, { encoding: 'latin1' }))
        if (name.startsWith(TEMPORARY)) await removeTree(folder, nameFromLatin1(name), { share })
    },
  }
}
