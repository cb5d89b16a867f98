// Where things are built before they are moved into place by one rename: beside the server's files, on the same file
// system, out of the game's sight. Names that start with `tmp-` belong to nobody after a restart.
import { readdirSync } from 'node:fs'
import { newId } from '../../../kit/ids.ts'
import { type Directory, openOwnFolder } from './directory.ts'
import { nameFromLatin1 } from './names.ts'
import { removeTree } from './remove-tree.ts'
import { shareOf } from './sandbox.ts'

const TEMPORARY = 'tmp-'

export const temporaryName = () => `${TEMPORARY}${newId('upl')}`

export interface Staged extends AsyncDisposable {
  /** The staging folder itself. */
  readonly folder: Directory
  readonly name: string
}

export interface Staging {
  /** A name that nothing has yet. Whatever has it at the end of the block is taken away, or by `tidy` where that fails. */
  open(): Staged
  /** Takes away what could not be taken away before, for want of descriptors or since the disk refused. */
  tidy(): Promise<void>
  /** Takes away what was left by a process that died. */
  recover(): Promise<void>
}

export function createStaging(folderPath: string, onUnexpected: (error: unknown) => void): Staging {
  const share = shareOf(folderPath)
  const left = new Set<string>()
  return {
    open() {
      const folder = openOwnFolder(folderPath)
      const name = temporaryName()
      return {
        folder,
        name,
        async [Symbol.asyncDispose]() {
          using opened = folder
          try {
            await removeTree(opened, name, { share })
          } catch (error) {
            // What was built may be in its place by now: that did not fail.
            left.add(name)
            onUnexpected(error)
          }
        },
      }
    },
    async tidy() {
      if (left.size === 0) return
      using folder = openOwnFolder(folderPath)
      for (const name of left) {
        try {
          await removeTree(folder, name, { share })
          left.delete(name)
        } catch (error) {
          // The others are not kept waiting for it.
          onUnexpected(error)
        }
      }
    },
    async recover() {
      using folder = openOwnFolder(folderPath)
      for (const name of readdirSync(folder.address, { encoding: 'latin1' }))
        if (name.startsWith(TEMPORARY)) await removeTree(folder, nameFromLatin1(name), { share })
    },
  }
}
