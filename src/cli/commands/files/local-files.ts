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

export interface Naming {
  /** The path on the server of the only file. */
  as: string | undefined
  /** Of a directory, what is in it and not the directory itself. */
  isContents: boolean
}

export async function readLocal(paths: readonly string[], { as, isContents }: Naming): Promise<LocalTree> {
  const tree: LocalTree = { files: [], emptyDirectories: [], leftOut: [] }
  for (const path of paths) {
    // What is named is followed, as everybody does; what lies beneath is not.
    const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') throw new CommandError(`${path} does not exist.`, EXIT.notFound)
      throw new CommandError(`${path} cannot be read (${error.code}).`)
    })
    const name = basename(resolve(path))
    if (stats.isDirectory()) await collect(path, isContents ? '' : `${name}/`, tree)
    else if (stats.isFile()) tree.files.push({ local: path, name, sizeBytes: stats.size })
    else tree.leftOut.push(path)
  }
  if (as !== undefined) {
    const [only] = tree.files
    if (!only || paths.length > 1 || tree.files.length > 1) throw new UsageError('--as is for a single file.')
    only.name = as.replace(/^\/+/, '')
  }
  refuseDoubles(tree.files)
  return tree
}

/** Of two that would become one, the first would be gone from the server as soon as it is there. */
function refuseDoubles(files: readonly LocalFile[]): void {
  const byName = new Map<string, string>()
  for (const { name, local } of files) {
    const other = byName.get(name)
    if (other !== undefined) throw new UsageError(`${other} and ${local} would both become ${name}.`)
    byName.set(name, local)
  }
}

/** `above` is what their names begin with, a slash at its end. */
async function collect(local: string, above: string, tree: LocalTree): Promise<void> {
  const entries = await readdir(local, { withFileTypes: true })
  if (entries.length === 0 && above !== '') tree.emptyDirectories.push(above.slice(0, -1))
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const child = join(local, entry.name)
    const name = above + entry.name
    if (entry.isDirectory()) await collect(child, `${name}/`, tree)
    else if (entry.isFile()) tree.files.push({ local: child, name, sizeBytes: (await lstat(child)).size })
    else tree.leftOut.push(child)
  }
}
