// Reads a server's console from its files, one of them at a time: however much there is, one file is in memory.
import { readFile } from 'node:fs/promises'
import type { ConsoleLine } from '../../../contract/games/console.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { createTurns } from '../../../kit/waiting/turns.ts'
import { LINE_END, listSegments, parseLine, type Segment } from './segments.ts'

export interface ConsolePage {
  lines: ConsoleLine[]
  next: number | null
}

/** Newest first, below `before`. */
export async function readPage(
  folder: string,
  serverId: string,
  { before, limit, q }: { before: number | null; limit: number; q: string | null },
  signal?: AbortSignal,
): Promise<ConsolePage> {
  const wanted = q?.toLowerCase() ?? null
  const turns = createTurns(serverId, signal)
  const lines: ConsoleLine[] = []
  for (const segment of listSegments(folder).reverse()) {
    if (before !== null && segment.firstLine >= before) continue
    await turns.take()
    const content = await readWhole(segment)
    if (!content || (wanted !== null && !mayHold(content, wanted))) continue
    const ends = endsOf(content)
    for (let index = ends.length - 1; index >= 0; index--) {
      const number = segment.firstLine + index
      if (before !== null && number >= before) continue
      const line = parseLine(lineAt(content, ends, index), number)
      if (wanted !== null && !line.text.toLowerCase().includes(wanted)) continue
      // One more than asked for says that there is more.
      if (lines.length === limit) return { lines, next: lines.at(-1)?.line ?? null }
      lines.push(line)
      if (turns.due()) await turns.take()
    }
  }
  return { lines, next: null }
}

/** The number of the last line that is there; 0 where there is none. */
export async function readLastLine(folder: string): Promise<number> {
  const newest = listSegments(folder).at(-1)
  const content = newest && (await readWhole(newest))
  return newest && content ? newest.firstLine + endsOf(content).length - 1 : 0
}

/** Undefined where it was removed meanwhile. */
async function readWhole({ path }: Segment): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Where each line ends; what has no end yet is no line. */
function endsOf(content: Buffer): number[] {
  const ends: number[] = []
  for (let at = content.indexOf(LINE_END); at >= 0; at = content.indexOf(LINE_END, at + 1)) ends.push(at)
  return ends
}

const lineAt = (content: Buffer, ends: readonly number[], index: number) =>
  content.subarray(index === 0 ? 0 : (ends[index - 1] ?? 0) + 1, ends[index])

/** A quick look at the whole file, before its lines are taken apart. */
const mayHold = (content: Buffer, wanted: string) => content.toString('utf8').toLowerCase().includes(wanted)
