// What will be read of packs, and when: so that what is needed soon comes together, and what is needed last gives way.
import type { ByteRange } from '../../../blobs/store.ts'

/** For whoever reads in order, only what this many reads from now on need is fetched: of most packs all that is wanted. */
const AHEAD_TURNS = 512

export interface WantedRange extends ByteRange {
  /** How many blocks of it. */
  uses: number
}

export interface ExpectedRange extends ByteRange {
  /** When it will be read, as far as that is known: after what was expected before. One for each use, the next one first. */
  turns: number[]
}

/** By where they begin. */
export type Ranges = Map<number, ExpectedRange>

export interface Session {
  /** By pack, in the order in which they will be read. */
  expected: Map<string, Ranges>
  /** Of the next that is expected. */
  turns: number
  /** Of what was read last. */
  lastTurn: number
  isInOrder: boolean
  isClosed: boolean
}

export function rangesIn({ expected }: Session, packId: string): Ranges {
  const ranges: Ranges = expected.get(packId) ?? new Map()
  expected.set(packId, ranges)
  return ranges
}

/** `uses` of them at the next turn. */
export function expectOf(session: Session, packId: string, { offset, length, uses }: WantedRange): void {
  const turn = session.turns++
  addTurns(rangesIn(session, packId), { offset, length, turns: new Array(uses).fill(turn) })
}

export function addTurns(ranges: Ranges, { offset, length, turns }: ExpectedRange): void {
  const known = ranges.get(offset)
  if (!known) ranges.set(offset, { offset, length, turns: [...turns] })
  // Nearly always: what is expected comes after what was.
  else if ((turns[0] ?? 0) >= (known.turns.at(-1) ?? 0)) known.turns.push(...turns)
  else known.turns.unshift(...turns)
}

/** All that is expected of the pack, and what is wanted of it now. */
export function takeAll(session: Session, packId: string, ranges: readonly WantedRange[]): Ranges {
  const taken: Ranges = session.expected.get(packId) ?? new Map()
  session.expected.delete(packId)
  for (const { offset, length, uses } of ranges) {
    const turn = session.isInOrder ? session.lastTurn : session.turns++
    if (!taken.has(offset)) taken.set(offset, { offset, length, turns: new Array(uses).fill(turn) })
  }
  return taken
}

/** Of these, what will be read soon; the rest stays expected. What was passed over will not be read any more. */
export function takeNearest(session: Session, packId: string, ranges: readonly WantedRange[]): Ranges {
  const isWanted = new Set(ranges.map(({ offset }) => offset))
  const all = [...takeAll(session, packId, ranges).values()]
  const turnOf = (range: ExpectedRange) => nextTurnOf(range, session)
  const first = all.reduce((least, range) => {
    return ranges.length === 0 || isWanted.has(range.offset) ? Math.min(least, turnOf(range)) : least
  }, Number.POSITIVE_INFINITY)
  if (ranges.length > 0) session.lastTurn = Math.max(session.lastTurn, first)
  const isNear = (range: ExpectedRange) => isWanted.has(range.offset) || turnOf(range) < first + AHEAD_TURNS
  const later = all.filter((range) => !isNear(range) && turnOf(range) < Number.POSITIVE_INFINITY)
  if (later.length > 0) session.expected.set(packId, rangesOf(later))
  return rangesOf(all.filter(isNear))
}

const rangesOf = (ranges: readonly ExpectedRange[]): Ranges => new Map(ranges.map((range) => [range.offset, range]))

/** Infinity where it will not be read any more. */
function nextTurnOf({ turns }: ExpectedRange, { isInOrder, lastTurn }: Session): number {
  if (isInOrder) while (turns[0] !== undefined && turns[0] < lastTurn) turns.shift()
  return turns[0] ?? Number.POSITIVE_INFINITY
}

/** The pack that will be read next of those that nobody has fetched, as far as that can be told by the first of each. */
export function nextOf(session: Session): string | undefined {
  const [first] = session.expected.keys()
  if (!session.isInOrder) return first
  let [next, turn] = [first, Number.POSITIVE_INFINITY]
  for (const [packId, ranges] of session.expected) {
    const [range] = ranges.values()
    const nearest = range ? nextTurnOf(range, session) : Number.POSITIVE_INFINITY
    if (nearest < turn) [next, turn] = [packId, nearest]
  }
  return next
}

/** How many others will be read before the next of these. */
export function distanceOf(ranges: Ranges, session: Session): number {
  let turn = Number.POSITIVE_INFINITY
  for (const range of ranges.values()) turn = Math.min(turn, nextTurnOf(range, session))
  return turn - session.lastTurn
}

/** It was read. */
export function consume(left: Ranges, { offset, uses }: WantedRange, session: Session): void {
  const range = left.get(offset)
  if (!range) return
  const turn = range.turns.splice(0, uses).at(-1) ?? 0
  session.lastTurn = Math.max(session.lastTurn, turn)
  if (range.turns.length === 0) left.delete(offset)
}
