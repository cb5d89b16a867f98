// Finds the patterns of a template in lines of a game. Both are written by strangers: matching goes through the line once
// for each piece of the pattern, and never back.
import type { LinePattern } from '../../../contract/games/launch.ts'

export interface LineMatcher {
  matches(line: Buffer): boolean
}

/** Whether a line matches is all that is asked here, so a name may be any text too. */
const PLACEHOLDER = /\*|\{[A-Za-z][A-Za-z0-9_]*\}/

/** No colours: a game that prints them does so around the words that a pattern is about. */
const ESCAPE = 27

export function createLineMatcher(patterns: readonly LinePattern[]): LineMatcher {
  const pieces = patterns.map((pattern) => pattern.split(PLACEHOLDER).filter((piece) => piece !== ''))
  const wanted = pieces.filter((list) => list.length > 0).map((list) => list.map((piece) => Buffer.from(piece)))
  return {
    matches(line) {
      if (wanted.length === 0) return false
      const plain = withoutColours(line)
      return wanted.some((list) => hasAll(plain, list))
    },
  }
}

/** Each piece after the one before it. */
function hasAll(line: Buffer, pieces: readonly Buffer[]): boolean {
  let from = 0
  for (const piece of pieces) {
    const at = line.indexOf(piece, from)
    if (at < 0) return false
    from = at + piece.length
  }
  return true
}

const COLOUR = new RegExp(`${String.fromCharCode(ESCAPE)}\\[[0-9;?]{0,32}[A-Za-z]`, 'g')
export const withoutColours = (line: Buffer): Buffer =>
  line.includes(ESCAPE) ? Buffer.from(line.toString('latin1').replace(COLOUR, ''), 'latin1') : line
