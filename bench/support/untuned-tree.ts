// A seeded server of about 1.7 GB that nothing was tuned for: small chunks, logs of words, and many short files of settings.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRandom, fillRegion } from '../game-tree.ts'

const REGION_FILES = 162
const REGION_BYTES = 10 * 1024 * 1024
const LOGS = 20
const LOG_BYTES = 2_400_000
const FOLDERS = 60
const FILES_A_FOLDER = 80

const WORDS =
  'the server saved chunk player joined left world tick entity block at of region loading done warn took ms from'

type Random = ReturnType<typeof createRandom>

const wordsOf = (random: Random) => {
  const words = WORDS.split(' ')
  return () => words[random.next() % words.length] ?? ''
}

export function makeUntunedTree(root: string, seed = 1): void {
  const random = createRandom(seed)
  const word = wordsOf(random)
  mkdirSync(join(root, 'world/region'), { recursive: true })
  const buffer = Buffer.alloc(REGION_BYTES)
  for (let index = 0; index < REGION_FILES; index++) {
    fillRegion(buffer, random, { fewest: 2, most: 3 })
    writeFileSync(join(root, 'world/region', `r.${index % 13}.${Math.floor(index / 13)}.mca`), buffer)
  }
  mkdirSync(join(root, 'logs'))
  for (let index = 0; index < LOGS; index++) writeFileSync(join(root, 'logs', `${index}.log`), logOf(random, word))
  for (let folder = 0; folder < FOLDERS; folder++) {
    const plugin = join(root, 'plugins', `plugin-${folder}`)
    mkdirSync(plugin, { recursive: true })
    for (let file = 0; file < FILES_A_FOLDER; file++)
      writeFileSync(join(plugin, `${file}.yml`), settingsOf(random, word))
  }
}

function logOf(random: Random, word: () => string): string {
  const lines: string[] = []
  for (let length = 0; length < LOG_BYTES; ) {
    const words = Array.from({ length: 4 + (random.next() % 12) }, word)
    const line = `[${random.next() % 24}:${random.next() % 60}] ${words.join(' ')} ${random.next() % 100_000}\n`
    lines.push(line)
    length += line.length
  }
  return lines.join('')
}

function settingsOf(random: Random, word: () => string): string {
  const lines = Array.from(
    { length: 5 + (random.next() % 116) },
    () => `${word()}-${word()}: ${random.next() % 10_000}\n`,
  )
  return lines.join('')
}
