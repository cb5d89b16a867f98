// Isolation without bubblewrap: as root, a game runs as a user of its own, to whom the service, its data and other servers are
// closed by their modes. It may pass the directories that lead to its own files, and list none of them.
import { chmodSync, chownSync, lstatSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Layout } from '../../layout.ts'
import { findProgram, type GameUser } from './isolation.ts'

const CLOSED = 0o700
const PASSED_BY_ALL = 0o711
const PASSED_BY_GROUP = 0o710

export interface UserIsolation {
  /** Null where it is possible; else why it is not. */
  whyNot(): string | null
  /** Opens the way to its files for the user of the server's game, and to nobody else. */
  prepare(serverId: string, user: GameUser): void
}

export function createUserIsolation(layout: Layout): UserIsolation {
  const dataDir = dirname(layout.servers)
  let isClosed = false

  /** Once: what is made afterwards is made so. */
  function closeAll(): void {
    if (isClosed) return
    for (const name of readdirSync(layout.servers)) keepAtMost(join(layout.servers, name), PASSED_BY_GROUP)
    for (const name of readdirSync(dataDir)) if (name !== 'servers') keepAtMost(join(dataDir, name), CLOSED)
    isClosed = true
  }

  return {
    whyNot() {
      if (process.getuid?.() !== 0) return 'the service is not root'
      if (!findProgram('setpriv')) return 'setpriv (of util-linux) is not installed'
      const closed = ancestorsOf(dataDir).find((path) => (lstatSync(path).mode & 0o001) === 0)
      return closed === undefined ? null : `${closed} is closed to other users, so games could not reach their files`
    },
    prepare(serverId, { gid }) {
      closeAll()
      const { root } = layout.server(serverId)
      const { uid: owner, gid: group } = lstatSync(root)
      if (group !== gid) chownSync(root, owner, gid)
      chmodSync(root, PASSED_BY_GROUP)
      for (const path of [layout.servers, dataDir]) chmodSync(path, PASSED_BY_ALL)
    },
  }
}

function keepAtMost(path: string, mode: number): void {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // A symlink has no mode of its own: what it leads to is elsewhere.
  if (!stats || stats.isSymbolicLink()) return
  if ((stats.mode & 0o777 & ~mode) !== 0) chmodSync(path, stats.mode & mode)
}

function ancestorsOf(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...ancestorsOf(parent)]
}
