// Finds the patterns of a template in lines of a game. Both are written by strangers: matching goes through the line once
// for each piece of the pattern, and never back.
import type { LinePattern } from '../../../contract/games/launch.ts'

export interface LineMatcher {
  matches(line: Buffer): boolean
}

/** Between two pieces of a pattern: any text, or a name. */
const PLACEHOLDER = /(\*|\{[A-Za-z][A-Za-z0-9_]*\})/

const BEGIN = '^'
const END = '$'
const SPACE = 32

/** No colours: a game that prints them does so around the words that a pattern is about. */
const ESCAPE = 27

interface Piece {
  text: Buffer
  /** Whether what stands before it is a name, which has no spaces. */
  isAfterName: boolean
}

interface Compiled {
  pieces: Piece[]
  isAtBegin: boolean
  isAtEnd: boolean
}

/** A pattern without its anchors. */
export function withoutAnchors(pattern: LinePattern): LinePattern {
  const from = pattern.startsWith(BEGIN) ? 1 : 0
  return pattern.slice(from, pattern.endsWith(END) && pattern.length > from ? -1 : undefined)
}

export const isAnchored = (pattern: LinePattern): boolean => withoutAnchors(pattern) !== pattern

export function createLineMatcher(patterns: readonly LinePattern[]): LineMatcher {
  const compiled = patterns.map(compile).filter(({ pieces }) => pieces.some(({ text }) => text.length > 0))
  return {
    matches(line) {
      if (compiled.length === 0) return false
      const plain = withoutColours(line)
      return compiled.some((pattern) => isFound(plain, pattern))
    },
  }
}

function compile(pattern: LinePattern): Compiled {
  const parts = withoutAnchors(pattern).split(PLACEHOLDER)
  const isAtBegin = pattern.startsWith(BEGIN)
  const pieces = parts
    .map((part, index) => ({
      text: Buffer.from(part),
      // Where a pattern may begin anywhere, so may the name.
      isAfterName: isAtBegin && (parts[index - 1]?.startsWith('{') ?? false),
    }))
    .filter((_, index) => index % 2 === 0)
  return { pieces, isAtBegin, isAtEnd: pattern.endsWith(END) && pattern.length > 1 }
}

/** Each piece after the one before it, at the first place where it is: so a line is gone through once. */
function isFound(line: Buffer, { pieces, isAtBegin, isAtEnd }: Compiled): boolean {
  let from = 0
  if (isAtBegin) while (line[from] === SPACE) from++
  for (const [index, { text, isAfterName }] of pieces.entries()) {
    const isTail = isAtEnd && index === pieces.length - 1
    const at = isTail ? line.length - text.length : line.indexOf(text, from)
    if (at < from || (isAtBegin && index === 0 && at !== from)) return false
    if (isTail && !line.subarray(at).equals(text)) return false
    if (isAfterName && line.subarray(from, at).includes(SPACE)) return false
    from = at + text.length
  }
  return true
}

const COLOUR = new RegExp(`${String.fromCharCode(ESCAPE)}\\[[0-9;?]{0,32}[A-Za-z]`, 'g')
export const withoutColours = (line: Buffer): Buffer =>
  line.includes(ESCAPE) ? Buffer.from(line.toString('latin1').replace(COLOUR, ''), 'latin1') : line
