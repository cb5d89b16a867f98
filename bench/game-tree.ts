// A seeded Minecraft-like server, the same each time: region files of 4 KiB sectors, partly compressible, and small files.
import { appendFileSync, closeSync, mkdirSync, openSync, readSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const SECTOR = 4096

export interface TreeShape {
  regionFiles: number
  regionBytes: number
  smallFiles: number
}

export const MINECRAFT: TreeShape = { regionFiles: 160, regionBytes: 11 * 1024 * 1024, smallFiles: 5000 }

/** xorshift128+: fast, and the same on every machine. */
export function createRandom(seed: number) {
  let low = (seed * 2654435761) >>> 0 || 1
  const next = () => {
    low ^= low << 13
    low ^= low >>> 17
    low ^= low << 5
    return low >>> 0
  }
  return {
    next,
    fill(buffer: Buffer) {
      const words = new Uint32Array(buffer.buffer, buffer.byteOffset, buffer.length >> 2)
      for (let i = 0; i < words.length; i++) words[i] = next()
    },
  }
}

/** A chunk as a game writes it: compressed already, then zeros up to the sector's end. One in forty is empty. */
export function fillRegion(
  buffer: Buffer,
  random: ReturnType<typeof createRandom>,
  chunks = { fewest: 2, most: 9 },
): void {
  random.fill(buffer)
  for (let at = 0; at < buffer.length; ) {
    const sectors = chunks.fewest + (random.next() % (chunks.most - chunks.fewest + 1))
    const end = Math.min(buffer.length, at + sectors * SECTOR)
    const isEmpty = random.next() % 40 === 0
    buffer.fill(0, isEmpty ? at : end - (random.next() % SECTOR), end)
    at = end
  }
}

export function makeTree(root: string, shape: TreeShape = MINECRAFT, seed = 1): void {
  const random = createRandom(seed)
  const regions = join(root, 'world/region')
  mkdirSync(regions, { recursive: true })
  const buffer = Buffer.alloc(shape.regionBytes)
  for (let index = 0; index < shape.regionFiles; index++) {
    fillRegion(buffer, random)
    writeFileSync(join(regions, `r.${index % 13}.${Math.floor(index / 13)}.mca`), buffer)
  }
  for (let index = 0; index < shape.smallFiles; index++) {
    const folder = join(root, index % 2 ? 'plugins' : 'world/playerdata', String(index % 50))
    mkdirSync(folder, { recursive: true })
    const line = `entry: ${random.next()}\nname: "player ${random.next() % 1000}"\nscore: ${random.next() % 100}\n`
    const bytes = Buffer.alloc(random.next() % 16_384, line)
    random.fill(bytes.subarray(0, (bytes.length >> 3) & ~3))
    writeFileSync(join(folder, `${index}.dat`), bytes)
  }
}

/** Rewrites sectors in place over some region files, as a game that saves does. Returns how many bytes. */
export function changeInPlace(root: string, options = { files: 40, bytes: 15_000_000 }, seed = 2): number {
  const random = createRandom(seed)
  const perFile = Math.floor(options.bytes / options.files)
  let changed = 0
  for (let file = 0; file < options.files; file++) {
    const index = file * 4
    const path = join(root, 'world/region', `r.${index % 13}.${Math.floor(index / 13)}.mca`)
    const size = statSync(path).size
    const fd = openSync(path, 'r+')
    // A player moves about: what is saved lies together, in a few places.
    for (let spot = 0; spot < 4; spot++) {
      const run = Buffer.alloc(Math.floor(perFile / 4 / SECTOR) * SECTOR)
      const at = (random.next() % Math.floor((size - run.length) / SECTOR)) * SECTOR
      readSync(fd, run, 0, run.length, at)
      fillRegion(run, random)
      writeSync(fd, run, 0, run.length, at)
      changed += run.length
    }
    closeSync(fd)
  }
  return changed
}

/** Appends a line to some of the small files. */
export function changeSmallFiles(root: string, count: number): void {
  for (let index = 0; index < count; index++) {
    const file = index * 100
    appendFileSync(join(root, file % 2 ? 'plugins' : 'world/playerdata', String(file % 50), `${file}.dat`), 'changed\n')
  }
}
