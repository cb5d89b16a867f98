// Finds by name and, when asked, by content. It stops at a number of matches or after a time, and says so. Runs in a
// thread of its own (reader-worker.ts).
import type { SearchMatch } from '../../../contract/agent/agent-files.ts'
import { isOutOfDescriptors } from '../../../kit/files/errno.ts'
import { type OpenFile, openFileAt } from '../sandbox/directory.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { WalkEntry } from '../sandbox/walk.ts'
import { kindOf } from './entries.ts'
import { looksLikeText } from './mime.ts'

const MAX_MATCHES = 1000
const MAX_MATCHES_A_FILE = 20
const MAX_FILE_BYTES = 64n * 1024n * 1024n
const MAX_LINE = 240
const CHUNK_BYTES = 256 * 1024
const LONGEST_MS = 20_000

export interface SearchRequest {
  path?: string
  query: string
  content?: boolean
  limit?: number
  signal?: AbortSignal
}

export async function search(
  files: Sandbox,
  request: SearchRequest,
): Promise<{ matches: SearchMatch[]; isComplete: boolean }> {
  const limit = Math.min(Math.max(request.limit ?? 100, 1), MAX_MATCHES)
  const wanted = request.query.toLowerCase()
  const timeLimit = AbortSignal.timeout(LONGEST_MS)
  const signal = request.signal ? AbortSignal.any([request.signal, timeLimit]) : timeLimit
  const matches: SearchMatch[] = []
  try {
    for await (const entry of files.walk(files.resolve(request.path ?? '/'), { signal })) {
      if (entry.name.toLowerCase().includes(wanted)) matches.push(match(entry, null, null))
      if (request.content && entry.stats.isFile() && matches.length < limit)
        await searchFile(entry, wanted, matches, limit, signal)
      if (matches.length >= limit) return { matches: matches.slice(0, limit), isComplete: false }
    }
  } catch (error) {
    if (timeLimit.aborted && !request.signal?.aborted) return { matches, isComplete: false }
    throw error
  }
  return { matches, isComplete: true }
}

async function searchFile(
  entry: WalkEntry,
  wanted: string,
  matches: SearchMatch[],
  limit: number,
  signal: AbortSignal,
): Promise<void> {
  if (entry.stats.size === 0n || entry.stats.size > MAX_FILE_BYTES) return
  using file = openIfReadable(entry)
  if (!file) return
  let found = 0
  for await (const { lines, firstNumber } of linesWith(file, wanted, signal)) {
    for (const [index, line] of lines.entries()) {
      if (!line.toLowerCase().includes(wanted)) continue
      matches.push(match(entry, firstNumber + index, excerpt(line, wanted)))
      if (++found >= MAX_MATCHES_A_FILE || matches.length >= limit) return
    }
  }
}

/** What has vanished or may not be read is left out. */
function openIfReadable(entry: WalkEntry): OpenFile | undefined {
  try {
    return openFileAt(entry.parent, entry.name)
  } catch (error) {
    // It could be read: an answer without it would pass for complete.
    if (isOutOfDescriptors(error)) throw error
    return undefined
  }
}

/**
 * The lines of those chunks in which the text occurs at all. Nothing for a binary file. A line longer than a chunk is cut
 * into pieces.
 */
async function* linesWith(file: OpenFile, wanted: string, signal: AbortSignal): AsyncGenerator<Lines> {
  const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, Number(file.stats.size)))
  const decoder = new TextDecoder()
  let rest = ''
  let firstNumber = 1
  for (let at = 0; ; ) {
    const bytesRead = await file.read(buffer, 0, buffer.length, at)
    signal.throwIfAborted()
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    if (at === 0 && !looksLikeText(chunk.subarray(0, 1024))) return
    at += bytesRead
    const text = rest + decoder.decode(chunk, { stream: true })
    const end = text.length > 2 * CHUNK_BYTES ? text.length : text.lastIndexOf('\n') + 1
    const whole = text.slice(0, end)
    rest = text.slice(end)
    if (whole.toLowerCase().includes(wanted)) yield { lines: whole.split('\n'), firstNumber }
    firstNumber += countLineEnds(whole)
  }
  if (rest) yield { lines: [rest], firstNumber }
}

interface Lines {
  lines: string[]
  firstNumber: number
}

function countLineEnds(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}

function match(entry: WalkEntry, lineNumber: number | null, line: string | null): SearchMatch {
  return { path: entry.path, kind: kindOf(entry.stats), lineNumber, line }
}

function excerpt(line: string, wanted: string): string {
  if (line.length <= MAX_LINE) return line.trimEnd()
  const at = Math.max(0, line.toLowerCase().indexOf(wanted) - MAX_LINE / 4)
  return line.slice(at, at + MAX_LINE).toWellFormed()
}
