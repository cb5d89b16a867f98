// Finds who joins and who leaves in the lines of a game, by the patterns of its template. Patterns and lines are written by
// strangers: matching goes through a line a fixed number of times, whatever is in it.
import { PLAYER_NAME_MAX_CHARS } from '../../../contract/fixed-limits.ts'
import type { Launch, LinePattern } from '../../../contract/games/launch.ts'
import {
  createLineMatcher,
  isAnchored,
  type LineMatcher,
  withoutAnchors,
  withoutColours,
} from '../console/line-pattern.ts'

export type PlayerEvent = 'joined' | 'left'

export interface PlayerPatterns {
  /** Whether both joins and leaves are known, so that they add up to who plays. */
  readonly isComplete: boolean
  /** Whether a line in these bytes may match. Cheap: most bytes of a console are about something else. */
  mayMatch(bytes: Buffer): boolean
  match(line: Buffer): { event: PlayerEvent; player: string } | undefined
}

interface Compiled {
  event: PlayerEvent
  /** The pieces of text before the name, in order; the last stands right before it. */
  before: Buffer[]
  /** The first stands right after it. */
  after: Buffer[]
  /** The longest of them, which says most. */
  longest: Buffer
  /** Of a pattern that says where it begins or ends in a line. */
  anchored: LineMatcher | null
}

const NAME = '{player}'
const PLACEHOLDER = /\*|\{[A-Za-z][A-Za-z0-9_]*\}/
/** Of places in one line where a name may end. */
const ATTEMPTS = 4

/** Undefined where no pattern has a name in it. */
export function createPlayerPatterns({ joins, leaves }: Pick<Launch, 'joins' | 'leaves'>): PlayerPatterns | undefined {
  const compiled = [...compileAll('joined', joins), ...compileAll('left', leaves)]
  if (compiled.length === 0) return undefined
  const has = (wanted: PlayerEvent) => compiled.some(({ event }) => event === wanted)
  return {
    isComplete: has('joined') && has('left'),
    mayMatch: (bytes) => compiled.some(({ longest }) => bytes.includes(longest)),
    match(line) {
      const plain = withoutColours(line)
      for (const pattern of compiled) {
        if (pattern.anchored && !pattern.anchored.matches(plain)) continue
        const player = findName(plain, pattern)
        if (player !== undefined) return { event: pattern.event, player }
      }
      return undefined
    },
  }
}

const compileAll = (event: PlayerEvent, patterns: readonly LinePattern[]) =>
  patterns.map((pattern) => compile(event, pattern)).filter((compiled) => compiled !== undefined)

function compile(event: PlayerEvent, whole: LinePattern): Compiled | undefined {
  const pattern = withoutAnchors(whole)
  const at = pattern.indexOf(NAME)
  if (at < 0) return undefined
  const piecesOf = (text: string) => text.split(PLACEHOLDER).map((piece) => Buffer.from(piece))
  const before = piecesOf(pattern.slice(0, at))
  const after = piecesOf(pattern.slice(at + NAME.length))
  const [longest] = [...before, ...after].sort((a, b) => b.length - a.length)
  const anchored = isAnchored(whole) ? createLineMatcher([whole]) : null
  // What would match everything means nothing.
  return longest && longest.length > 0 ? { event, before, after, longest, anchored } : undefined
}

/** A name has no spaces: so what somebody says in a chat is seldom taken for a join. */
function findName(line: Buffer, { before, after }: Compiled): string | undefined {
  const left = before.at(-1) as Buffer
  const [right = NOTHING, ...rest] = after
  const start = endOf(line, before.slice(0, -1), 0)
  const first = start === undefined ? -1 : line.indexOf(left, start)
  if (start === undefined || first < 0) return undefined
  let from = first + left.length
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const end = right.length === 0 ? endOfWord(line, from) : line.indexOf(right, from)
    if (end < 0) return undefined
    const begin =
      left.length === 0 ? beginOfWord(line, start, end) : line.lastIndexOf(left, end - left.length) + left.length
    const name = line.toString('utf8', begin, end)
    if (isName(name) && endOf(line, rest, end + right.length) !== undefined) return cleanName(name)
    if (right.length === 0) return undefined
    from = end + 1
  }
  return undefined
}

const NOTHING = Buffer.alloc(0)
const isName = (text: string) => !/\s/u.test(text) && cleanName(text) !== ''

/** Where the last of the pieces ends, each after the one before it. */
function endOf(line: Buffer, pieces: readonly Buffer[], from: number): number | undefined {
  let at = from
  for (const piece of pieces) {
    const found = line.indexOf(piece, at)
    if (found < 0) return undefined
    at = found + piece.length
  }
  return at
}

const SPACE = 32

function endOfWord(line: Buffer, from: number): number {
  const at = line.indexOf(SPACE, from)
  return at < 0 ? line.length : at
}

const beginOfWord = (line: Buffer, start: number, end: number) =>
  end === 0 ? end : Math.max(start, line.lastIndexOf(SPACE, end - 1) + 1)

const CONTROLS = /[\p{Cc}\p{Cs}\u2028\u2029]/gu

/** What a game calls a player, for people: no control characters, and not without end. */
export function cleanName(name: string): string {
  const clean = name.slice(0, PLAYER_NAME_MAX_CHARS * 4).replace(CONTROLS, '')
  return [...clean].slice(0, PLAYER_NAME_MAX_CHARS).join('')
}
