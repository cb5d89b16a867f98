// Turns an existing directory into a server's files by one rename: nothing is copied, so modes, owners, times and links
// stay the same.
import { access, constants, lstat, open, realpath, rename } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import { StartFault } from '../kit/start-fault.ts'
import type { Layout } from './layout.ts'

/** Everything that can be known beforehand, so that no server is made for a directory that cannot be moved. */
export async function requireAdoptable(dataDir: string, dir: string): Promise<string> {
  const path = resolve(dir)
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    throw new StartFault(`${path} cannot be read (${error.code}).`)
  })
  if (stats.isSymbolicLink()) throw new StartFault(`${path} is a symbolic link. Name the directory that it leads to.`)
  if (!stats.isDirectory()) throw new StartFault(`${path} is not a directory.`)
  const [real, data] = [await realpath(path), await realpath(dataDir)]
  if (isWithin(data, real) || isWithin(real, data))
    throw new StartFault(`${path} and the data directory ${dataDir} lie within each other.`)
  const parent = await lstat(dirname(real))
  if (parent.dev !== stats.dev) throw new StartFault(`${path} is where something is mounted, and cannot be moved.`)
  if ((await lstat(data)).dev !== stats.dev)
    throw new StartFault(
      `${path} and the data directory ${dataDir} are on different file systems. Move it to that of the data directory first, ` +
        'or send it to a new server with "gamekeeper files put --contents".',
    )
  for (const changed of [dirname(real), real])
    await access(changed, constants.W_OK).catch(() => {
      throw new StartFault(`This user may not move ${path}: ${changed} cannot be written.`)
    })
  return real
}

/** The server is new and has no files: a rename replaces an empty directory and nothing else. */
export async function moveIntoServer(layout: Layout, serverId: string, dir: string): Promise<void> {
  const { files, root } = layout.server(serverId)
  await rename(dir, files)
  for (const parent of [root, dirname(dir)]) {
    await using directory = await open(parent, 'r')
    await directory.sync()
  }
}

function isWithin(path: string, above: string): boolean {
  const way = relative(above, path)
  return way === '' || (way !== '..' && !way.startsWith('../'))
}
