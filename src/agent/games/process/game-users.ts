// The user of each server's game, where the service is root. It is whoever the top of the server's files belongs to, so the
// disk says it, and what the API puts there belongs to the game too.
import { chownSync, lchownSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { fail } from '../../../contract/errors.ts'
import { createMutex } from '../../../kit/waiting/mutex.ts'
import { addressOf, openRoot } from '../../files/sandbox/directory.ts'
import { walk } from '../../files/sandbox/walk.ts'
import type { Layout } from '../../layout.ts'
import { isOwner } from '../supervisor/ownership.ts'
import type { OwnershipQuestion } from '../supervisor/protocol.ts'
import { findProgram, type GameUser } from './isolation.ts'

export interface UserRange {
  first: number
  last: number
}

export interface GameUsers {
  /** Null where the service is not root: then a game runs as the user that the service runs as. */
  assign(serverId: string): Promise<GameUser | null>
  /** Asks whether everything of the server belongs to its user. What the service writes from then on does too. Null: nobody can say. */
  ownershipOf(serverId: string, user: GameUser): OwnershipQuestion | null
  /** Everything of the server that does not belong to its user is given to it. */
  giveFiles(serverId: string, user: GameUser): Promise<void>
}

export interface GameUsersDeps {
  layout: Layout
  range: UserRange
  /** Where servers have users out of the same range. */
  others?: readonly Layout[]
}

export function createGameUsers({ layout, range, others = [] }: GameUsersDeps): GameUsers {
  const isRoot = process.getuid?.() === 0
  const mutex = createMutex()
  const isInRange = (uid: number) => uid >= range.first && uid <= range.last
  const count = range.last - range.first + 1
  /** Two services on one machine begin at different ones: what belongs to a user is ended with its game. */
  const begin = crc32(layout.servers) % count

  function taken(): Set<number> {
    const uids = new Set<number>()
    for (const parent of [layout, ...others].flatMap(({ servers, held, removed }) => [servers, held, removed]))
      for (const name of namesIn(parent)) {
        const stats = lstatSync(join(parent, name, 'files'), { throwIfNoEntry: false })
        if (stats) uids.add(stats.uid)
      }
    return uids
  }

  /**
   * Of `find`, since it is so at almost every start, and going through all files here takes ten times as long
   * (`npm run bench -- games`).
   */
  function ownershipOf(serverId: string, { uid }: GameUser): OwnershipQuestion | null {
    const file = findProgram('find')
    if (!file) return null
    const isOthers = ['!', '-uid', String(uid), '!', '(', '-type', 'f', '-links', '+1', ')']
    return { file, args: [layout.server(serverId).files, ...isOthers, '-printf', 'x', '-quit'] }
  }

  return {
    assign(serverId) {
      return mutex(async () => {
        if (!isRoot) return null
        const { files } = layout.server(serverId)
        const { uid: owner } = lstatSync(files)
        if (isInRange(owner)) return { uid: owner, gid: owner }
        const used = taken()
        for (let i = 0; i < count; i++) {
          const uid = range.first + ((begin + i) % count)
          if (used.has(uid)) continue
          // From here on it is this server's, also after a crash.
          chownSync(files, uid, uid)
          return { uid, gid: uid }
        }
        throw fail(
          'not_startable',
          'Every user of GAMEKEEPER_GAME_UIDS belongs to a server already. Give more of them.',
        )
      })
    },

    ownershipOf,

    async giveFiles(serverId, { uid, gid }) {
      const question = ownershipOf(serverId, { uid, gid })
      if (question && (await isOwner(question))) return
      using top = openRoot(layout.server(serverId).files)
      for await (const { parent, name, stats } of walk(top, serverId, { anyDepth: true })) {
        // A file with two names may have the other one elsewhere.
        const isShared = stats.isFile() && stats.nlink > 1n
        if (Number(stats.uid) !== uid && !isShared) lchownSync(addressOf(parent, name), uid, gid)
      }
    },
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
