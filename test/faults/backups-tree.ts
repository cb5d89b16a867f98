// Changes a tree at random, by a given source of chance: files, directories, links, of all sizes, and sectors of large files.
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

const SECTOR_BYTES = 4096
/** Backups look at what is in the sectors of files of this size. */
const LARGE_BYTES = 1024 * 1024
const NAMES = ['a', 'b', 'c', 'world', 'region', 'r.0.0.mca', 'ü', 'log']

export function changeTree(root: string, random: (below: number) => number): void {
  for (let left = 3 + random(6); left > 0; left--) changeOne(root, random)
  for (const path of largeFiles(root)) if (random(2) === 0) changeSectors(path, random)
}

function largeFiles(root: string): string[] {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => lstatSync(path).size >= LARGE_BYTES)
    .sort()
}

/** In place, as a game that saves does. */
export function changeSectors(path: string, random: (below: number) => number): void {
  const sectors = Math.floor(lstatSync(path).size / SECTOR_BYTES)
  const file = openSync(path, 'r+')
  for (let left = 1 + random(20); left > 0; left--) {
    const bytes = randomBytes((1 + random(3)) * SECTOR_BYTES - random(SECTOR_BYTES))
    writeSync(file, bytes, 0, bytes.length, random(sectors) * SECTOR_BYTES)
  }
  closeSync(file)
}

function changeOne(root: string, random: (below: number) => number): void {
  let folder = root
  for (let depth = random(3); depth > 0; depth--) {
    folder = join(folder, pick(NAMES, random))
    if (!isDirectory(folder)) rmSync(folder, { force: true })
    mkdirSync(folder, { recursive: true })
  }
  const path = join(folder, `${pick(NAMES, random)}${random(4)}`)
  const kind = random(10)
  rmSync(path, { recursive: true, force: true })
  if (kind < 5) writeFileSync(path, randomBytes(random(20_000)))
  else if (kind < 7) writeFileSync(path, randomBytes(random(3_000_000)))
  else if (kind < 8) mkdirSync(path)
  else if (kind < 9) symlinkSync(pick(NAMES, random), path)
  else {
    const other = readdirSync(folder, { withFileTypes: true }).find((entry) => entry.isFile())
    if (other) linkSync(join(folder, other.name), path)
  }
}

const pick = (names: string[], random: (below: number) => number) => names[random(names.length)] ?? 'x'

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? true
}
