// What is on this machine, to be sent: every file beneath what was named, found before the first is sent.
import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { CommandError, EXIT, UsageError } from '../../exit-codes.ts'

export interface LocalFile {
  local: string
  /** Relative to the directory on the server. */
  name: string
  sizeBytes: number
}

export interface LocalTree {
  files: LocalFile[]
  emptyDirectories: string[]
  /** Symbolic links, sockets and the like. */
  leftOut: string[]
}

/** `as` is the path on the server of the only file. */
export async function readLocal(paths: readonly string[], as: string | undefined): Promise<LocalTree> {
  const tree: LocalTree = { files: [], emptyDirectories: [], leftOut: [] }
  for (const path of paths) {
    // What is named is followed, as everybody does; what lies beneath is not.
    const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
      throw new CommandError(
        `${path} cannot be read (${error.code}).`,
        error.code === 'ENOENT' ? EXIT.notFound : EXIT.failed,
      )
    })
    const name = basename(resolve(path))
    if (stats.isDirectory()) await collect(path, name, tree)
    else if (stats.isFile()) tree.files.push({ local: path, name, sizeBytes: stats.size })
    else tree.leftOut.push(path)
  }
  if (as !== undefined) {
    const [only] = tree.files
    if (!only || paths.length > 1 || tree.files.length > 1) throw new UsageError('--as is for a single file.')
    only.name = as.replace(/^\/+/, '')
  }
  return tree
}

async function collect(local: string, name: string, tree: LocalTree): Promise<void> {
  const entries = await readdir(local, { withFileTypes: true })
  if (entries.length === 0) tree.emptyDirectories.push(name)
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const child = join(local, entry.name)
    const childName = `${name}/${entry.name}`
    if (entry.isDirectory()) await collect(child, childName, tree)
    else if (entry.isFile()) tree.files.push({ local: child, name: childName, sizeBytes: (await lstat(child)).size })
    else tree.leftOut.push(child)
  }
}
