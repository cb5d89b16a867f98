// Taking one thing back out of the trash, to where it was.
import type { FileEntry } from '../../../contract/agent/agent-files.ts'
import { fail } from '../../../contract/errors.ts'
import { type Change, journaled } from '../changes/changes.ts'
import { namesIn } from '../changes/probes.ts'
import { describePath } from '../reading/entries.ts'
import { formatPath, type Segments, splitPath } from '../sandbox/paths.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { ServerFiles } from '../server-files.ts'
import { roomForParents } from '../space/parents.ts'

export async function restoreTrash(server: ServerFiles, trashId: string, change: Change): Promise<FileEntry> {
  using _held = server.lock.share()
  const restore = async () => {
    using _kept = server.trash.keep(trashId)
    const { path: before, inode, hasOtherNames } = server.trash.find(trashId)
    const segments = splitPath(before)
    const above = segments.slice(0, -1)
    requireWay(server.files, above)
    const directory = formatPath(above)
    const had = hasOtherNames ? await namesIn(server, directory, inode) : []
    const probe = { op: 'restored', trashId, directory, inode, had } as const
    return await journaled(server, change, probe, async (durable) => {
      await durable
      using room = await roomForParents(server, [segments])
      const path = await server.trash.restore(trashId, () => room.renew(segments))
      server.usage.touch()
      return { answer: describePath(server.files, path), properties: { trashId, path } }
    })
  }
  // Names of one file come back one after another: each knows which there were before it.
  return await server.claims.alone(() => [`trash ${trashId}`, `inode ${server.trash.find(trashId).inode}`], restore)
}

/** Refused before anything is written down; again where its directories are opened. */
function requireWay(files: Sandbox, directory: Segments): void {
  const { depth, stats } = files.reach(directory)
  if (!stats || stats.isDirectory()) return
  const path = JSON.stringify(formatPath(directory.slice(0, depth)))
  if (stats.isSymbolicLink()) throw fail('invalid_path', `${path} is a symbolic link, which is not followed here.`)
  throw fail('already_exists', `The file ${path} is in the way.`)
}
