// Appends to a server's console. One process at a time does: the supervisor of the game that runs.
import { constants, fdatasyncSync, ftruncateSync, mkdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { CONSOLE_LINE_MAX_BYTES, CONSOLE_SEGMENT_BYTES } from '../../../contract/fixed-limits.ts'
import type { ConsoleSource } from '../../../contract/games/console-sources.ts'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { countLines, LINE_END, lineHead, listSegments, pruneSegments, segmentName } from './segments.ts'

const OPEN = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW
const END = Buffer.from([LINE_END])

export interface ConsoleWriter extends Disposable {
  /** Of the last line that was written; 0 where there is none. */
  readonly lastLine: number
  /** Whole lines without their ends. What the disk does not take is counted and told of once it takes lines again. */
  write(source: ConsoleSource, lines: readonly Buffer[]): void
  /** Makes durable what was written, as far as the disk does it. */
  sync(): void
  /** Removes what is too old or too much. */
  prune(): void
}

export function openConsoleWriter(folder: string, now: () => number): ConsoleWriter {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  let { file, bytes, nextLine } = openNewest(folder)
  let isSynced = true
  let lost = 0

  /** The next file first: a disk that has no room for it must not take away the one that is there. */
  function rotate(): void {
    const before = file
    const isOpen = attempt(() => {
      file = openSegment(join(folder, segmentName(nextLine)))
    })
    if (!isOpen) return
    bytes = 0
    attempt(() => fdatasyncSync(before.fd))
    before[Symbol.dispose]()
    attempt(() => pruneSegments(folder, now()))
  }

  function append(source: ConsoleSource, lines: readonly Buffer[]): void {
    const head = lineHead(now(), source)
    const parts: Buffer[] = []
    for (const line of lines)
      parts.push(head, line.length > CONSOLE_LINE_MAX_BYTES ? line.subarray(0, CONSOLE_LINE_MAX_BYTES) : line, END)
    const chunk = Buffer.concat(parts)
    if (bytes > 0 && bytes + chunk.length > CONSOLE_SEGMENT_BYTES) rotate()
    writeWhole(file, chunk, bytes)
    bytes += chunk.length
    nextLine += lines.length
    isSynced = false
  }

  function tellLost(): void {
    if (lost === 0) return
    append('gamekeeper', [Buffer.from(`${lost} lines were lost: the disk took no more.`)])
    lost = 0
  }

  return {
    get lastLine() {
      return nextLine - 1
    },
    write(source, lines) {
      if (lines.length === 0) return
      try {
        tellLost()
        append(source, lines)
      } catch {
        lost += lines.length
      }
    },
    sync() {
      // A game may say nothing more for hours.
      attempt(tellLost)
      if (isSynced) return
      isSynced = attempt(() => fdatasyncSync(file.fd))
    },
    prune: () => void attempt(() => pruneSegments(folder, now())),
    [Symbol.dispose]: () => file[Symbol.dispose](),
  }
}

/** A failing disk must not end whoever holds the game's output. */
function attempt(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}

/** All of it or nothing: half a line would shift the numbers of all that follow. */
function writeWhole(file: Descriptor, chunk: Buffer, at: number): void {
  let written = 0
  while (written < chunk.length) {
    try {
      written += writeSync(file.fd, chunk, written, chunk.length - written, at + written)
    } catch (error) {
      if (written > 0) ftruncateSync(file.fd, at)
      throw error
    }
  }
}

const openSegment = (path: string) => openDescriptor(path, OPEN, 0o600)

/** Where the last writer stopped. A line that a crash has cut short is ended, so that its number stays its own. */
function openNewest(folder: string): { file: Descriptor; bytes: number; nextLine: number } {
  const newest = listSegments(folder).at(-1)
  if (!newest) return { file: openSegment(join(folder, segmentName(1))), bytes: 0, nextLine: 1 }
  const content = readFileSync(newest.path)
  using opened = new DisposableStack()
  const file = opened.use(openSegment(newest.path))
  const isCut = content.length > 0 && content.at(-1) !== LINE_END
  if (isCut) writeWhole(file, END, content.length)
  opened.move()
  return {
    file,
    bytes: content.length + (isCut ? 1 : 0),
    nextLine: newest.firstLine + countLines(content) + (isCut ? 1 : 0),
  }
}
