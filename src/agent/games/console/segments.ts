// The console of a server on disk: a folder of files, each named by the number of its first line. A line is
// `<milliseconds> <letter of its source> <bytes>\n`, so the number of a line is the name of its file plus the line ends
// before it, and no index can ever disagree with what is there.
import { readdirSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { CONSOLE_KEPT_BYTES, CONSOLE_KEPT_MS } from '../../../contract/fixed-limits.ts'
import type { ConsoleLine } from '../../../contract/games/console.ts'
import { CONSOLE_SOURCES, type ConsoleSource } from '../../../contract/games/console-sources.ts'
import { hasCode, ignoreAbsent } from '../../../kit/files/errno.ts'
import { iso } from '../../../kit/time.ts'

const DIGITS = 15
const NAME = /^(\d{15})\.log$/
export const LINE_END = 10
const SPACE = 32

export interface Segment {
  path: string
  firstLine: number
}

export const segmentName = (firstLine: number) => `${String(firstLine).padStart(DIGITS, '0')}.log`

/** Oldest first. */
export function listSegments(folder: string): Segment[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
  return names
    .filter((name) => NAME.test(name))
    .sort()
    .map((name) => ({ path: join(folder, name), firstLine: Number(NAME.exec(name)?.[1]) }))
}

/** The newest is never removed: it says which number comes next. */
export function pruneSegments(folder: string, now: number): void {
  let keptBytes = 0
  for (const [index, { path }] of listSegments(folder).reverse().entries()) {
    const { size, mtimeMs } = statSync(path)
    keptBytes += size
    if (index > 0 && (keptBytes > CONSOLE_KEPT_BYTES || now - mtimeMs > CONSOLE_KEPT_MS)) removeIfThere(path)
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    ignoreAbsent(error)
  }
}

export function countLines(content: Buffer): number {
  let count = 0
  for (let at = content.indexOf(LINE_END); at >= 0; at = content.indexOf(LINE_END, at + 1)) count++
  return count
}

const LETTERS: Record<ConsoleSource, string> = { stdout: 'o', stderr: 'e', command: 'c', gamekeeper: 'g' }
const SOURCE_OF = new Map(CONSOLE_SOURCES.map((source) => [LETTERS[source], source]))

/** What stands before the bytes of a line. */
export const lineHead = (at: number, source: ConsoleSource) => Buffer.from(`${at} ${LETTERS[source]} `, 'latin1')

/** Undefined for what is no line of ours. */
export function splitLine(bytes: Buffer): { at: number; source: ConsoleSource; text: Buffer } | undefined {
  const end = bytes.indexOf(SPACE)
  const at = Number(bytes.toString('latin1', 0, Math.max(0, end)))
  const source = SOURCE_OF.get(bytes.toString('latin1', end + 1, end + 2))
  const isOurs = end > 0 && Number.isSafeInteger(at) && at < 8.64e15 && source !== undefined
  return isOurs ? { at, source, text: bytes.subarray(end + 3) } : undefined
}

/** A power cut can leave anything in the file: what is no line of ours is shown as it is. */
export function parseLine(bytes: Buffer, line: number): ConsoleLine {
  const { at, source, text } = splitLine(bytes) ?? { at: 0, source: 'gamekeeper' as const, text: bytes }
  return { line, at: iso(at), source, text: text.toString('utf8') }
}
