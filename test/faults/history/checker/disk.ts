// What lies on the disk, read past the service.
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { labelOf } from '../../files-content.ts'
import { DIRECTORY, type TrashedTree, type Tree } from '../model.ts'

/** A file that is not whole, or that no client has written. */
export const BROKEN = 'broken '

export const serverFolder = (dataDir: string, serverId: string) => join(dataDir, 'servers', serverId)
export const filesFolder = (dataDir: string, serverId: string) => join(serverFolder(dataDir, serverId), 'files')
const trashFolder = (dataDir: string, serverId: string) => join(serverFolder(dataDir, serverId), 'trash')
export const stagingFolder = (dataDir: string, serverId: string) => join(serverFolder(dataDir, serverId), 'staging')

/** What is below a folder, by the path from it; `prefix` stands before each. */
export function readTree(folder: string, prefix = ''): Map<string, string> {
  const tree = new Map<string, string>()
  for (const entry of namesIn(folder)) {
    const path = `${prefix}/${entry}`
    const full = join(folder, entry)
    const label = labelAt(full)
    if (label === undefined) continue
    tree.set(path, label)
    if (label === DIRECTORY) for (const [below, each] of readTree(full, path)) tree.set(below, each)
  }
  return tree
}

function labelAt(full: string): string | undefined {
  const stats = lstatSync(full, { throwIfNoEntry: false })
  if (!stats) return undefined
  if (stats.isDirectory()) return DIRECTORY
  return labelOf(readFileSync(full)) ?? `${BROKEN}${stats.size} bytes`
}

export function readTrash(dataDir: string, serverId: string): TrashedTree[] {
  const trash = trashFolder(dataDir, serverId)
  return namesIn(trash).flatMap((batch) => {
    const items = readItems(join(trash, batch, 'record.json'))
    return items.flatMap(({ path }, index) => {
      const slot = join(trash, batch, index.toString(16).padStart(4, '0'))
      const label = labelAt(slot)
      if (label === undefined) return []
      const tree: Tree = new Map([['', label], ...(label === DIRECTORY ? readTree(slot) : [])])
      return [{ path, tree }]
    })
  })
}

/** Empty for a folder whose record was never finished, or that is being emptied. */
function readItems(record: string): { path: string }[] {
  try {
    return (JSON.parse(readFileSync(record, 'utf8')) as { items: { path: string }[] }).items
  } catch {
    return []
  }
}

export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** As docs/files.md counts it: the space that files and trash take, a file with several names once. */
export function usedBytes(dataDir: string, serverId: string): number {
  const seen = new Set<number>()
  const isRecord = (path: string) => /^\/[^/]+\/record\.json$/.test(path)
  // The trash first: what is thrown away meanwhile is then missed, and not counted twice.
  return (
    spaceIn(trashFolder(dataDir, serverId), '', seen, isRecord) +
    spaceIn(filesFolder(dataDir, serverId), '', seen, () => false)
  )
}

function spaceIn(folder: string, prefix: string, seen: Set<number>, isLeftOut: (path: string) => boolean): number {
  let bytes = 0
  for (const name of namesIn(folder)) {
    const stats = lstatSync(join(folder, name), { throwIfNoEntry: false })
    if (!stats || isLeftOut(`${prefix}/${name}`)) continue
    if (stats.isDirectory()) bytes += spaceIn(join(folder, name), `${prefix}/${name}`, seen, isLeftOut)
    else if (!seen.has(stats.ino)) {
      seen.add(stats.ino)
      bytes += stats.blocks * 512
    }
  }
  return bytes
}

/** Every whole file of ours anywhere below a folder, wherever the service keeps it. */
export function labelsBelow(folder: string): Set<string> {
  return new Set([...readTree(folder).values()].filter((label) => label !== DIRECTORY && !label.startsWith(BROKEN)))
}
