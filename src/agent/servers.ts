// The folders of the servers on this machine: creating, setting aside and removing them without ever leaving half a
// server.
import { existsSync } from 'node:fs'
import { mkdir, open, readdir, rename, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { AgentServers } from '../contract/agent.ts'
import { fail } from '../contract/errors.ts'
import { hasCode, ignoreAbsent } from '../kit/files/errno.ts'
import { openRoot } from './files/sandbox/directory.ts'
import { explainedDisk } from './files/sandbox/errors.ts'
import { removeTree } from './files/sandbox/remove-tree.ts'
import type { Layout } from './layout.ts'

const NOT_EMPTY = ['ENOTEMPTY', 'EEXIST', 'ENOTDIR']

const asideOf = (layout: Layout, serverId: string) => join(layout.held, serverId)

/** One rename, so that the server is there whole or not at all. */
async function moveFolder(from: string, to: string): Promise<void> {
  await rename(from, to)
  for (const parent of [dirname(to), dirname(from)]) await syncDirectory(parent)
}

/** As `AgentServers.create`. */
export async function createServerFolders(layout: Layout, serverId: string): Promise<void> {
  const folders = layout.server(serverId)
  const aside = asideOf(layout, serverId)
  if (!existsSync(folders.root) && existsSync(aside)) await moveFolder(aside, folders.root)
  await explainedDisk(async () => {
    await mkdir(layout.servers, { recursive: true })
    // One by one: Node's recursive way says ENOENT where the system says EROFS.
    await mkdir(folders.root, 0o700).catch(ignorePresent)
    await mkdir(folders.files).catch(ignorePresent)
    for (const folder of [folders.trash, folders.staging]) await mkdir(folder, 0o700).catch(ignorePresent)
  })
}

export function createAgentServers(
  layout: Layout,
  deps: {
    /**
     * Ends what is under way on the folders; nothing new begins until the answer is disposed of, and nothing ever where it
     * is not: what was looked up before the folders went stays refused.
     */
    quiesce: (serverId: string) => Promise<Disposable>
    onRemoved: (serverId: string) => void
  },
): AgentServers & { recover(): Promise<void> } {
  const doomed = (serverId: string) => join(layout.removed, serverId)
  const aside = (serverId: string) => asideOf(layout, serverId)

  /** A game may have nested its files deeper than any path reaches. */
  async function removeDoomed(serverId: string): Promise<void> {
    using removed = openRoot(layout.removed)
    if (!(await removeTree(removed, serverId, { share: serverId })))
      throw new Error(`something is mounted in what was ${serverId}`)
  }

  async function sweepOne(serverId: string): Promise<boolean> {
    const folders = layout.server(serverId)
    try {
      // rmdir takes only what is empty, so this can never take a file with it.
      for (const folder of [folders.files, folders.trash, folders.staging, folders.root])
        await rmdir(folder).catch(ignoreAbsent)
      return true
    } catch (error) {
      if (hasCode(error, ...NOT_EMPTY)) return false
      throw error
    }
  }

  return {
    create: ({ serverId }) => createServerFolders(layout, serverId),

    async hold({ serverId }) {
      const { root } = layout.server(serverId)
      if (!existsSync(root)) {
        // A process before this one may have died in between.
        deps.onRemoved(serverId)
        return
      }
      await mkdir(layout.held, { recursive: true, mode: 0o700 })
      const quiet = await deps.quiesce(serverId)
      try {
        await moveFolder(root, aside(serverId))
      } catch (error) {
        quiet[Symbol.dispose]()
        throw error
      }
      deps.onRemoved(serverId)
    },

    async unhold({ serverId }) {
      const { root } = layout.server(serverId)
      if (!existsSync(aside(serverId))) {
        if (existsSync(root)) return
        throw fail('not_found', 'The folders of the server are missing.')
      }
      // Folders without a file are no server; where there is a file in both, neither goes over the other.
      if (existsSync(root) && !(await sweepOne(serverId)))
        throw fail('already_exists', 'The folders of the server exist twice.')
      await moveFolder(aside(serverId), root)
    },

    async remove({ serverId }) {
      await mkdir(layout.removed, { recursive: true, mode: 0o700 })
      for (const folder of [layout.server(serverId).root, aside(serverId)]) {
        // What follows the rename can be resumed.
        await rename(folder, doomed(serverId)).catch(ignoreAbsent)
        deps.onRemoved(serverId)
        await removeDoomed(serverId)
      }
    },

    async sweep({ known }) {
      const keep = new Set(known)
      const present = await readdir(layout.servers).catch(nothing)
      const removed: string[] = []
      for (const name of present) {
        if (!keep.has(name) && name.startsWith('srv_') && (await sweepOne(name))) removed.push(name)
      }
      return { removed }
    },

    /** Goes on with removals that a crash has cut short. */
    async recover() {
      for (const name of await readdir(layout.removed).catch(nothing)) {
        await removeDoomed(name)
      }
    },
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

function ignorePresent(error: unknown): void {
  if (!hasCode(error, 'EEXIST')) throw error
}

function nothing(error: unknown): string[] {
  ignoreAbsent(error)
  return []
}
