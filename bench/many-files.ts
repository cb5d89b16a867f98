// A seeded tree of very many small files, the same each time, and small changes to it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRandom } from './game-tree.ts'

const A_DIRECTORY = 1000
const SMALLEST = 100
const LARGEST = 1000

/** Text that shrinks to about half, no two files alike. */
const material = (() => {
  const bytes = Buffer.alloc(1 << 19)
  createRandom(7).fill(bytes)
  return Buffer.from(bytes.toString('hex'), 'latin1')
})()

const pathOf = (folder: string, file: number) =>
  join(folder, `part-${Math.floor(file / A_DIRECTORY)}`, `object-${file}.json`)

function write(folder: string, file: number, version: number, random: ReturnType<typeof createRandom>): void {
  const length = SMALLEST + (random.next() % (LARGEST - SMALLEST))
  const from = random.next() % (material.length - LARGEST)
  const content = Buffer.from(material.subarray(from, from + length))
  content.write(`{"id":${file},"version":${version}}\n`, 0, 'latin1')
  writeFileSync(pathOf(folder, file), content)
}

export function makeManyFiles(folder: string, count: number): void {
  const random = createRandom(count)
  for (let file = 0; file < count; file++) {
    if (file % A_DIRECTORY === 0) mkdirSync(join(folder, `part-${file / A_DIRECTORY}`), { recursive: true })
    write(folder, file, 0, random)
  }
}

/** One file in so many is ever rewritten: a game writes again and again to where its players are. */
const ONE_IS_BUSY = 50

/** Rewrites `changed` of the busy files, which lie all over the tree. */
export function changeManyFiles(folder: string, count: number, changed: number, version: number): void {
  const random = createRandom(1000 + version)
  const busy = Math.ceil(count / ONE_IS_BUSY)
  for (let left = changed; left > 0; left--) write(folder, (random.next() % busy) * ONE_IS_BUSY, version, random)
}
