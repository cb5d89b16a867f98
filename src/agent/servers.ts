// The folders of the servers on this machine: making them, and taking them away without ever leaving half a server.
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentServers } from '../contract/agent.ts'
import { hasCode, ignoreAbsent } from '../kit/errno.ts'
import { explainedDisk } from './files/errors.ts'
import type { Layout } from './layout.ts'

const NOT_EMPTY = ['ENOTEMPTY', 'EEXIST', 'ENOTDIR']

export function createAgentServers(
  layout: Layout,
  onRemoved: (serverId: string) => void,
): AgentServers & { recover(): Promise<void> } {
  const doomed = (serverId: string) => join(layout.removed, serverId)

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
    async create({ serverId }) {
      const folders = layout.server(serverId)
      await explainedDisk(async () => {
        await mkdir(layout.servers, { recursive: true })
        // One by one: Node's recursive way says ENOENT where the system says EROFS.
        for (const folder of [folders.root, folders.files, folders.trash, folders.staging])
          await mkdir(folder).catch(ignorePresent)
      })
    },

    async remove({ serverId }) {
      await mkdir(layout.removed, { recursive: true })
      // One rename, so that the server is there whole or not at all; what follows can be resumed.
      await rename(layout.server(serverId).root, doomed(serverId)).catch(ignoreAbsent)
      onRemoved(serverId)
      await rm(doomed(serverId), { recursive: true, force: true })
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
        await rm(doomed(name), { recursive: true, force: true })
      }
    },
  }
}

function ignorePresent(error: unknown): void {
  if (!hasCode(error, 'EEXIST')) throw error
}

function nothing(error: unknown): string[] {
  ignoreAbsent(error)
  return []
}
