// Changes a tree at random, by a given source of chance: files, directories, links, of all sizes.
import { randomBytes } from 'node:crypto'
import { linkSync, lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const NAMES = ['a', 'b', 'c', 'world', 'region', 'r.0.0.mca', 'ü', 'log']

export function changeTree(root: string, random: (below: number) => number): void {
  for (let left = 3 + random(6); left > 0; left--) changeOne(root, random)
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
