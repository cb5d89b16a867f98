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

/** What lies on the disk, as docs/files.md counts it. */
export interface Used {
  /** The space that everything takes, a file with several names once. */
  bytes: number
  /** Of it, what files take that are not records of the trash: a directory grows with what is put into it. */
  fileBytes: number
  entries: number
}

const BLOCK_BYTES = 4096

export function usedBy(dataDir: string, serverId: string): Used {
  const seen = new Set<number>()
  const used: Used = { bytes: 0, fileBytes: 0, entries: 0 }
  // The trash first: what is thrown away meanwhile is then missed, and not counted twice.
  for (const folder of [trashFolder(dataDir, serverId), filesFolder(dataDir, serverId)]) {
    const top = lstatSync(folder, { throwIfNoEntry: false })
    used.bytes += Math.max(0, (top?.blocks ?? 0) * 512 - BLOCK_BYTES)
    countIn(folder, seen, used)
  }
  return used
}

function countIn(folder: string, seen: Set<number>, used: Used): void {
  for (const name of namesIn(folder)) {
    const stats = lstatSync(join(folder, name), { throwIfNoEntry: false })
    if (!stats) continue
    used.entries++
    const isNew = stats.isDirectory() || !seen.has(stats.ino)
    seen.add(stats.ino)
    if (isNew) used.bytes += stats.blocks * 512
    if (stats.isDirectory()) countIn(join(folder, name), seen, used)
    else if (isNew && name !== 'record.json') used.fileBytes += stats.blocks * 512
  }
}

/** Every whole file of ours anywhere below a folder, wherever the service keeps it. */
export function labelsBelow(folder: string): Set<string> {
  return new Set([...readTree(folder).values()].filter((label) => label !== DIRECTORY && !label.startsWith(BROKEN)))
}
